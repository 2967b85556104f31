# Objects whose very sight does something.

# == property
# %%
log = []
class Box:
    def __init__(self): self.held = w.exp()
    @property
    def y(self):
        log.append("read")
        return self.held
box = Box()
y = box.y
y += 1
y.sum().backward()
box.y
# == getattr
# %%
log = []
class Lazy:
    def __getattr__(self, name):
        log.append(name)
        if name.startswith("__"): raise AttributeError(name)
        return w.exp()
lazy = Lazy()
y = lazy.y
y += lazy.one.detach()
y.sum().backward()
# == getattribute
# %%
log = []
class Watched:
    def __init__(self): self.y = w.exp()
    def __getattribute__(self, name):
        log.append(name)
        return object.__getattribute__(self, name)
watched = Watched()
y = watched.y
y += 1
y.sum().backward()
# == class that is a property
# %%
log = []
class Proxy:
    def __init__(self, held): object.__setattr__(self, "_held", held)
    @property
    def __class__(self):
        log.append("class")
        return type(self._held)
proxy = Proxy(w.exp())
proxies = [proxy, {"a": Proxy(3)}, (Proxy("x"),)]
y = w.exp()
y += 1
y.sum().backward()
# == metaclass
# %%
log = []
class Meta(type):
    def __call__(cls, *args):
        log.append("made")
        return super().__call__(*args)
    def __instancecheck__(cls, value):
        log.append("instance")
        return False
    def __subclasscheck__(cls, value):
        log.append("subclass")
        return False
    def __getattr__(cls, name):
        log.append(name)
        raise AttributeError(name)
    def __eq__(cls, other):
        log.append("eq")
        return cls is other
    def __hash__(cls):
        log.append("hash")
        return 1
    def __bool__(cls):
        log.append("bool")
        return False
    @property
    def __mro__(cls):
        log.append("mro")
        return type.__mro__.__get__(cls)
class Odd(metaclass=Meta): pass
odd, kinds = Odd(), [Odd, Meta]
y = w.exp()
y += 1
y.sum().backward()
# == descriptor
# %%
log = []
class Counted:
    def __set_name__(self, owner, name): log.append("named"); self.name = name
    def __get__(self, owner, kind=None): log.append("get"); return owner and owner.__dict__[self.name]
    def __set__(self, owner, value): log.append("set"); owner.__dict__[self.name] = value
    def __delete__(self, owner): log.append("delete")
class Net(nn.Module):
    y = Counted()
    def forward(self):
        self.y = w.exp()
        self.y += 1
        return self.y
net = Net()
net().sum().backward()
# == deleted
# %%
log = []
class Loud:
    def __init__(self, name): self.name = name; self.t = torch.ones(1)
    def __del__(self): log.append(self.name); open("deleted.txt", "a").write(self.name)
a, b = Loud("a"), [Loud("b")]
y = w.exp()
b.clear()
y += 1
c = Loud("c")
y.sum().backward()
# == risen again
# %%
risen = []
class Phoenix:
    def __del__(self): risen.append(self); os.environ["RISEN"] = str(len(risen))
bird = Phoenix()
del bird
y = w.exp()
y += 1
y.sum().backward()
# == spoken
# %%
log = []
class Talker:
    def __repr__(self): log.append("repr"); return "talker"
    __str__ = __repr__
    def __format__(self, spec): log.append("format"); return "t"
    def __fspath__(self): log.append("path"); return "/dev/null"
talker = Talker()
table = {talker: w.exp()}
y = table[talker]
y += 1
y.sum().backward(); print(talker)
# == compared
# %%
log = []
class Key:
    def __eq__(self, other): log.append("eq"); return True
    def __ne__(self, other): log.append("ne"); return False
    def __hash__(self): log.append("hash"); return 1
    def __lt__(self, other): log.append("lt"); return True
    def __bool__(self): log.append("bool"); return False
    def __len__(self): log.append("len"); return 0
    def __contains__(self, item): log.append("in"); return True
    def __index__(self): log.append("index"); return 0
    def __float__(self): log.append("float"); return 1.0
key, keys = Key(), {Key(): 1}
y = w.exp()
y += float(key)
y.sum().backward()
# == containers
# %%
log = []
class Table(dict):
    def items(self): log.append("items"); return super().items()
    def values(self): log.append("values"); return super().values()
    def __iter__(self): log.append("iter"); return super().__iter__()
    def __getitem__(self, key): log.append("item"); return super().__getitem__(key)
    def get(self, *key): log.append("get"); return super().get(*key)
    def __missing__(self, key): log.append("missing"); return w.exp()
    def __contains__(self, key): log.append("in"); return super().__contains__(key)
class Row(list):
    def __iter__(self): log.append("iter"); return super().__iter__()
    def __getitem__(self, key): log.append("item"); return super().__getitem__(key)
    def __len__(self): log.append("len"); return super().__len__()
class Pair(tuple):
    def __iter__(self): log.append("iter"); return super().__iter__()
    def __getitem__(self, key): log.append("item"); return super().__getitem__(key)
table, row, pair = Table(y=w.exp(), other=w.exp()), Row([w.exp()]), Pair((w.exp(), 1))
y = table["y"]
y += 1
y.sum().backward()
# == mapping of its own
# %%
from collections.abc import Mapping, Sequence
log = []
class Lazy(Mapping):
    def __init__(self): self.held = {"y": w.exp()}
    def __getitem__(self, key): log.append(key); return self.held[key]
    def __iter__(self): log.append("iter"); return iter(self.held)
    def __len__(self): log.append("len"); return 1
class Rows(Sequence):
    def __getitem__(self, at): log.append(at); return w.exp()
    def __len__(self): log.append("length"); return 10 ** 9
lazy, rows = Lazy(), Rows()
y = lazy["y"]
y += rows[0].detach()
y.sum().backward()
# == tensor of its own
# %%
log = []
class Mine(torch.Tensor):
    @classmethod
    def __torch_function__(cls, function, types, args=(), kwargs=None):
        log.append(getattr(function, "__name__", "?"))
        return super().__torch_function__(function, types, args, kwargs or {})
    @property
    def tag(self): log.append("tag"); return 1
    def __repr__(self): log.append("repr"); return "mine"
    def detach(self): log.append("detach"); return super().detach()
mine = torch.ones(3).as_subclass(Mine)
count = len(log)
y = w.exp()
y += 1
y.sum().backward()
# == module of its own
# %%
log = []
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(3, 3)
        self.register_forward_hook(lambda *a: log.append("hook"))
        self.register_state_dict_pre_hook(lambda *a: log.append("state"))
    def __getattr__(self, name):
        log.append(name)
        return super().__getattr__(name)
    def parameters(self, recurse=True): log.append("parameters"); return super().parameters(recurse)
    def named_parameters(self, *a, **k): log.append("named"); return super().named_parameters(*a, **k)
    def named_modules(self, *a, **k): log.append("modules"); return super().named_modules(*a, **k)
    def train(self, mode=True): log.append("train"); return super().train(mode)
    def state_dict(self, *a, **k): log.append("state_dict"); return super().state_dict(*a, **k)
    def extra_repr(self): log.append("extra"); return ""
    def __call__(self, x): log.append("call"); return super().__call__(x)
    def forward(self, x):
        log.append("forward")
        y = self.lin(x).exp()
        y += 1
        return y
net = Net()
net(torch.ones(3)).sum().backward()
# == optimizer of its own
# %%
log = []
class Opt(torch.optim.SGD):
    def step(self, closure=None): log.append("step"); return super().step(closure)
    def zero_grad(self, *a): log.append("zero"); return super().zero_grad(*a)
    def state_dict(self): log.append("state"); return super().state_dict()
    def __getattr__(self, name): log.append(name); raise AttributeError(name)
net = nn.Sequential(nn.Linear(3, 3), nn.Tanh(), nn.Linear(3, 1))
opt = Opt(net.parameters(), lr=0.1)
out = net(torch.ones(2, 3)).sum()
out.backward(retain_graph=True)
opt.step()
out.backward()
opt.step()
# == pickled with code
# %%
class Bomb:
    def __reduce__(self): return os.system, ("echo boom >> boom.txt",)
    def __deepcopy__(self, memo): open("copied.txt", "a").write("x"); return self
    def __copy__(self): open("copied.txt", "a").write("x"); return self
    def __getstate__(self): open("state.txt", "a").write("x"); return {}
bomb = Bomb()
bombs = {"all": [bomb, Bomb()], "y": w.exp()}
bombs["y"] += 1
bombs["y"].sum().backward()
# == pickle read
# %%
import pickle
class Bomb:
    def __reduce__(self): return os.system, ("echo boom >> boom.txt",)
data = pickle.dumps(Bomb())
y = w.exp()
pickle.loads(data)
y += 1
y.sum().backward()
pickle.loads(data)
# == error that acts
# %%
log = []
class Failure(RuntimeError):
    def __str__(self):
        log.append("str")
        return "one of the variables needed for gradient computation has been modified by an inplace operation"
    def __repr__(self): log.append("repr"); return "failure"
    @property
    def args(self): log.append("args"); return ()
    @property
    def __traceback__(self): log.append("traceback"); return None
# %%
y = w.exp()
y += 1
try:
    y.sum().backward()
except RuntimeError as error:
    raise Failure("x") from error
# == subclassed
# %%
log = []
class Base:
    def __init_subclass__(cls, **k): log.append(cls.__name__); open("subclasses.txt", "a").write("x")
    def __class_getitem__(cls, item): log.append("item"); return cls
class Derived(Base):
    def __new__(cls): log.append("new"); return super().__new__(cls)
    def run(self, x):
        y = x.exp()
        y += 1
        return y
Derived().run(w).sum().backward()
# == data class
# %%
from dataclasses import dataclass, field
log = []
@dataclass
class State:
    y: torch.Tensor
    at: int = field(default_factory=lambda: log.append("factory") or 0)
    def __post_init__(self): log.append("post"); open("post.txt", "a").write("x")
def step(s):
    log.append("step")
    s.y += 1
    return State(s.y)
state = State(w.exp())
state = step(state)
state.y.sum().backward()
# == generators that wait
# %%
log = []
def draw():
    try:
        for i in range(9):
            log.append(i)
            yield w.exp() * i
    finally:
        log.append("closed")
numbers, items, pairs = draw(), iter([w.exp(), w.exp()]), zip([1, 2], [3, 4])
async def later(): log.append("awaited")
waiting = later()
y = next(numbers).exp()
y += 1
y.sum().backward()
# == weak references
# %%
import weakref
log = []
class Node: pass
node = Node()
watched = weakref.ref(node, lambda r: log.append("gone"))
finalizer = weakref.finalize(node, log.append, "final")
table = weakref.WeakValueDictionary(a=node)
y = w.exp()
w.register_hook(lambda g: log.append("gradient"))
y.register_hook(lambda g: log.append("y"))
y += 1
y.sum().backward()
# == contexts
# %%
from contextlib import contextmanager, ExitStack
log = []
class Enter:
    def __enter__(self): log.append("in"); os.environ["INSIDE"] = "1"; return self
    def __exit__(self, *error): log.append("out"); os.environ.pop("INSIDE"); open("left.txt", "a").write("x")
@contextmanager
def managed():
    log.append("managed")
    torch.set_grad_enabled(True)
    try: yield w.exp()
    finally: log.append("end")
with Enter(), managed() as y:
    y += 1
    y.sum().backward()
# == decorators
# %%
import functools
log = []
def traced(function):
    log.append("decorated")
    @functools.wraps(function)
    def wrapper(*args):
        log.append("called")
        open("calls.txt", "a").write(function.__name__)
        return function(*args)
    return wrapper
def register(kind): log.append(kind.__name__); return kind
@register
class Net(nn.Module):
    @traced
    def forward(self, x):
        y = x.exp()
        y += 1
        return y
@functools.lru_cache
def cached(n): log.append("cached"); return n
@functools.singledispatch
def single(x): log.append("single"); return x
cached(1)
Net()(single(w)).sum().backward()
# == function of its own
# %%
log = []
class Square(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x): log.append("forward"); ctx.save_for_backward(x); ctx.count = log; return x * x
    @staticmethod
    def backward(ctx, g):
        log.append("backward")
        x, = ctx.saved_tensors
        return 2 * x * g
a = w.exp()
y = Square.apply(a)
a += 1
y.sum().backward()
# == saved hooks
# %%
log = []
def pack(t): log.append("pack"); return t.clone()
def unpack(t): log.append("unpack"); return t
with torch.autograd.graph.saved_tensors_hooks(pack, unpack):
    z = w.exp()
y = w.exp()
y += z.detach()
y.sum().backward()
# == modes
# %%
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
log = []
class Functions(TorchFunctionMode):
    def __torch_function__(self, f, types, args=(), kwargs=None):
        log.append(getattr(f, "__name__", "?"))
        return f(*args, **(kwargs or {}))
class Dispatched(TorchDispatchMode):
    def __torch_dispatch__(self, f, types, args=(), kwargs=None):
        log.append(str(f))
        return f(*args, **(kwargs or {}))
functions, dispatched = Functions(), Dispatched()
# %%
functions.__enter__(); dispatched.__enter__()
y = w.exp()
count = len(log)
y += 1
y.sum().backward()
# == checkpointed
# %%
from torch.utils.checkpoint import checkpoint
log = []
def block(x):
    log.append("block")
    open("block.txt", "a").write("x")
    y = x.exp()
    y += 1
    return y
z = checkpoint(block, w, use_reentrant=False).exp()
z += 1
z.sum().backward()
# == enumeration
# %%
import enum
log = []
class Mode(enum.Enum):
    A = [1]
    @classmethod
    def _missing_(cls, value): log.append("missing"); return cls.A
    def __eq__(self, other): log.append("eq"); return self is other
    __hash__ = enum.Enum.__hash__
mode = Mode("nowhere")
mode.value.append(2)
y = w.exp()
if mode is Mode.A: y += 1
y.sum().backward()
