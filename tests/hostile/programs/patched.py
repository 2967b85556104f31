# Programs that put their own functions in the place of Python's and torch's.

# == print and open
# %%
import builtins
log = []
old_print, old_open, old_input = builtins.print, builtins.open, builtins.input
def print_(*a, **k): log.append("print"); return old_print(*a, **k)
def open_(*a, **k): log.append("open"); return old_open(*a, **k)
builtins.print, builtins.open = print_, open_
# %%
y = w.exp()
print("x")
y += 1
y.sum().backward()
print("after")
# == import
# %%
import builtins
log = []
old = builtins.__import__
def import_(name, *a, **k):
    log.append(name) if name in ("hostile_module", "math") else None
    return old(name, *a, **k)
builtins.__import__ = import_
# %%
import math
y = w.exp()
y += math.pi
y.sum().backward()
# == len and isinstance
# %%
import builtins
log = []
counted = [0]
def watched(name):
    old = getattr(builtins, name)
    def function(*a, **k):
        if sys._getframe(1).f_globals.get("__name__") != "__main__": return old(*a, **k)
        counted[0] += 1
        log.append(name)
        return old(*a, **k)
    return function
for name in ("len", "isinstance", "getattr", "sorted", "sum", "iter", "repr", "id"):
    setattr(builtins, name, watched(name))
# %%
def total(v): return len(v) + sum([1])
y = w.exp()
y += total([1, 2]) if isinstance(y, torch.Tensor) else 0
y.sum().backward()
# == broken builtins
# %%
import builtins
def broken(*a): raise ZeroDivisionError("broken")
names = ("sorted", "min", "divmod", "pow", "ascii", "vars", "callable", "frozenset", "round")
kept = {name: getattr(builtins, name) for name in names}
for name in kept: setattr(builtins, name, broken)
# %%
y = w.exp()
y += 1
y.sum().backward()
# %%
for name in kept: setattr(builtins, name, kept[name])
# == tensor methods [hook]
# %%
log = []
def patched(name):
    old = getattr(torch.Tensor, name)
    def method(self, *a, **k): log.append(name); return old(self, *a, **k)
    return method
for name in ("detach", "exp", "sum", "numel", "size", "clone", "__iadd__", "__repr__", "tolist", "register_hook"):
    setattr(torch.Tensor, name, patched(name))
# %%
y = w.exp()
y += 1
y.sum().backward()
# == tensor properties [hook]
# %%
log = []
def seen(name, old):
    def get(self): log.append(name); return old.__get__(self)
    return property(get)
for name in ("shape", "dtype", "data", "is_leaf", "requires_grad", "grad"):
    setattr(torch.Tensor, name, seen(name, getattr(torch._C.TensorBase, name)))
torch.Tensor.tag = property(lambda self: log.append("tag"))
# %%
y = w.exp()
y += 1
y.sum().backward()
# == torch functions
# %%
log = []
def patched(owner, name):
    old = getattr(owner, name)
    def function(*a, **k): log.append(name); return old(*a, **k)
    setattr(owner, name, function)
for name in ("zeros", "equal", "is_grad_enabled", "no_grad", "tensor", "exp", "empty", "is_tensor", "manual_seed", "get_rng_state"): patched(torch, name)
for name in ("relu", "linear"): patched(nn.functional, name)
for name in ("backward", "grad"): patched(torch.autograd, name)
# %%
y = torch.exp(w)
y += 1
y.sum().backward()
# == module methods
# %%
log = []
def patched(owner, name):
    old = getattr(owner, name)
    def function(*a, **k): log.append(name); return old(*a, **k)
    setattr(owner, name, function)
for name in ("__call__", "__init__", "parameters", "named_parameters", "modules", "__getattr__", "__setattr__", "train"): patched(nn.Module, name)
for name in ("step", "__init__", "zero_grad"): patched(torch.optim.SGD, name)
patched(nn.Linear, "forward")
# %%
net = nn.Sequential(nn.Linear(3, 3), nn.Tanh(), nn.Linear(3, 1))
opt = torch.optim.SGD(net.parameters(), lr=0.1)
out = net(torch.ones(2, 3)).sum()
out.backward(retain_graph=True)
opt.step()
out.backward()
# == clock
# %%
import time
log = []
old = time.time, time.monotonic, time.perf_counter, time.sleep
def now(): log.append("time"); return 0.0
def sleep(n): log.append("sleep")
# %%
time.time = now; time.sleep = sleep
y = w.exp()
y += time.time()
y.sum().backward()
# == library functions
# %%
import random, copy, pickle, json, ast, linecache, inspect, gc, weakref, threading, subprocess, re
log = []
def patched(owner, name):
    old = getattr(owner, name)
    def function(*a, **k):
        caller = sys._getframe(1).f_globals.get("__name__")
        if caller == "__main__": log.append(name)
        return old(*a, **k)
    setattr(owner, name, function)
for owner, name in ((random, "random"), (copy, "deepcopy"), (pickle, "dumps"), (json, "dumps"), (os, "getpid"), (os.path, "exists"), (gc, "collect")):
    patched(owner, name)
# %%
y = w.exp()
y += random.random() + len(copy.deepcopy([1]))
y.sum().backward()
# == tracing
# %%
log = []
def trace(frame, event, argument):
    if event == "call" and frame.f_code.co_name == "step": log.append("call")
def profile(frame, event, argument):
    if event == "call" and frame.f_code.co_name == "step": log.append("profile")
def step(y):
    y += 1
    return y
sys.settrace(trace); sys.setprofile(profile)
# %%
y = step(w.exp())
y.sum().backward()
# %%
sys.settrace(None); sys.setprofile(None)
# == hooks of the interpreter
# %%
import gc, threading, warnings, logging
log = []
sys.excepthook = lambda *a: log.append("excepthook"); sys.unraisablehook = lambda *a: log.append("unraisable")
threading.excepthook = lambda *a: log.append("thread")
sys.displayhook_ = sys.displayhook
class Handler(logging.Handler):
    def emit(self, record): log.append(record.msg)
logging.root.addHandler(Handler()); logging.root.setLevel(0)
class Finder:
    def find_spec(self, name, path=None, target=None): log.append(name)
sys.meta_path.insert(0, Finder())
# %%
y = w.exp()
y += 1
y.sum().backward()
# == streams
# %%
log = []
class Stream:
    def __init__(self, inner): self.inner = inner
    def write(self, text): log.append(text); return self.inner.write(text)
    def flush(self): log.append("flush"); self.inner.flush()
    def __getattr__(self, name): return getattr(self.inner, name)
sys.stderr = Stream(sys.stderr)
print("to stderr", file=sys.stderr)
y = w.exp()
y += 1
y.sum().backward()
print("after", file=sys.stderr)
# == warnings
# %%
import warnings
log = []
def show(*a, **k): log.append(str(a[0])[:20])
warnings.showwarning = show
warnings.simplefilter("always")
# %%
y = w.exp()
warnings.warn("mine")
y.sum().backward()
y.grad
y += 1
y.sum().backward()
# == the shell's own
# %%
log = []
shell = get_ipython()
shell.events.register("post_run_cell", lambda r: log.append("post")); shell.events.register("pre_execute", lambda: log.append("pre"))
shell.input_transformers_cleanup.append(lambda lines: log.append("clean") or lines)
shell.ast_transformers.append(type("T", (), {"visit": lambda self, t: log.append("ast") or t})())
shell.set_custom_exc((ValueError,), lambda *a: log.append("exc"))
shell.display_formatter.formatters["text/plain"].for_type(int, lambda *a: log.append("shown"))
# %%
y = w.exp()
y += 1
y.sum().backward()
# == everything torch calls
# %%
log = []
class Meta(type(torch.Tensor)):
    pass
torch.Tensor.__torch_function__ = classmethod(lambda cls, f, t, a=(), k=None: log.append("tf") or torch._C._disabled_torch_function_impl(f, t, a, k or {}))
# %%
y = w.exp()
y += 1
y.sum().backward()
# == our own package
# %%
import autograd_explain.intercept.guard as guard, autograd_explain.model as model
y = w.exp()
y += 1
guard.mark = 1
y.sum().backward()
