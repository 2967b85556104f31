# Programs that never end, or that take all there is; where nobody looks they do it, else not.

# == loop after the failure
# %%
y = w.exp()
y += 1
y.sum().backward()
while True: pass
# == sleep after the failure
# %%
import time
y = w.exp()
y += 1
y.sum().backward()
time.sleep(1000)
# == spin in C
# %%
y = w.exp()
y += 1
y.sum().backward()
sum(range(10 ** 13))
# == catch everything
# %%
y = w.exp()
y += 1
y.sum().backward()
while True:
    try:
        while True: pass
    except BaseException: continue
# == finally
# %%
def stuck():
    while True:
        try: return 1
        finally: continue
y = w.exp()
y += 1
y.sum().backward()
stuck()
# == stop oneself
# %%
import signal
y = w.exp()
y += 1
y.sum().backward()
signal.pthread_sigmask(signal.SIG_BLOCK, range(1, 32)); signal.raise_signal(signal.SIGSTOP); os.kill(os.getpid(), signal.SIGSTOP); signal.pause()
# == memory after the failure
# %%
kept = []
y = w.exp()
y += 1
y.sum().backward()
for _ in range(80): kept.append(bytearray(b"x") * (64 << 20))
# == memory of tensors
# %%
y = w.exp()
y += 1
y.sum().backward()
kept = [torch.ones(16 << 20) for _ in range(80)]
# == memory at once
# %%
y = w.exp()
y += 1
y.sum().backward()
torch.zeros(1 << 44); bytearray(1 << 44)
# == memory in an earlier cell
# %%
kernel = int(os.environ["HOSTILE_KERNEL"])
if os.getpid() != kernel: kept = [bytearray(b"x") * (64 << 20) for _ in range(80)]
# %%
y = w.exp()
y += 1
# %%
y.sum().backward()
# == memory where every error is caught
# %%
kernel = int(os.environ["HOSTILE_KERNEL"])
kept = []
y = w.exp()
for _ in range(80 if os.getpid() != kernel else 0):
    try: kept.append(torch.ones(16 << 20))
    except Exception: pass
y += 1
y.sum().backward()
# == recursion
# %%
def deep(n): return deep(n + 1)
def catching(n):
    try: return catching(n + 1)
    except RecursionError: return n
y = w.exp()
n = catching(0)
y += 1
y.sum().backward()
deep(0)
# == nested
# %%
nested = []
for _ in range(100_000): nested = [nested]
tree = {}
for _ in range(50_000): tree = {"a": tree}
class Node: pass
node = Node()
for _ in range(50_000):
    above = Node(); above.below = node; node = above
y = w.exp()
y += 1
y.sum().backward()
del nested, tree
# == cycles
# %%
ring = []; ring.append(ring)
table = {}; table["self"] = table; table["ring"] = ring
class Node: pass
node = Node(); node.me = node; node.__dict__["dict"] = node.__dict__
net = nn.Module(); net.__dict__["net"] = net; net.inner = nn.Linear(1, 1); net.inner.__dict__["outer"] = net
y = w.exp()
y += 1
y.sum().backward()
# == many names
# %%
globals().update({f"name{i}": i for i in range(100_000)})
globals().update({f"tensor{i}": torch.ones(1) for i in range(3_000)})
y = w.exp()
y += 1
y.sum().backward()
# == large values
# %%
text = "x" * (60 << 20)
rows = list(range(2_000_000))
table = {i: str(i) for i in range(300_000)}
tensors = [torch.ones(2) for _ in range(20_000)]
big = torch.ones(3000, 3000)
number = 7 ** 200_000
y = w.exp()
y += 1
y.sum().backward()
# == long graph
# %%
y = w
for _ in range(20_000): y = y + 1
y = y.exp()
y += 1
y.sum().backward()
# == wide graph
# %%
parts = [w.exp() for _ in range(5_000)]
for p in parts: p += 1
torch.stack(parts).sum().backward()
# == long loop
# %%
y = w.exp()
n = 0
while n < 300_000: n += 1
for i in range(10 ** 6): pass
total = sum(1 for _ in range(10 ** 6))
y += 1
y.sum().backward()
# == generator without end
# %%
import itertools
def forever():
    while True: yield w.exp()
class Endless:
    def __iter__(self): return self
    def __next__(self): return w.exp()
class Liar:
    def __len__(self): return 10 ** 15
    def __getitem__(self, at): return at
y = next(forever())
for y in itertools.islice(Endless(), 3): pass
first, *rest = itertools.islice(itertools.count(), 10)
values = [v for v, _ in zip(forever(), range(3))]
liar = Liar()
y += 1
y.sum().backward()
# == regular expression
# %%
import re
pattern, text = re.compile("(a+)+b"), "a" * 40
def check(t): return bool(pattern.match(t)) if t == "" else False
flag = check("")
y = w.exp()
y += 1
y.sum().backward()
pattern.match(text)
# == large numbers
# %%
import math
from fractions import Fraction
def power(n): return 7 ** n
small = power(3)
y = w.exp()
y += 1
y.sum().backward()
power(10 ** 9); math.factorial(10 ** 8); Fraction(3, 7) ** (10 ** 8); str(10 ** 10 ** 7); "a".ljust(10 ** 12)
# == many cells in one
# %%
if 1:
    y = w.exp()
    exec("\n".join(f"a{i} = {i}" for i in range(30_000)))
    y += 1
    y.sum().backward()
# == long line
# %%
y = w.exp(); y += 1; values = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9] + [len("xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx")]; y.sum().backward()
# == deep classes
# %%
kind = object
for i in range(300): kind = type(f"K{i}", (kind,), {"value": i})
one = kind()
many = [type(f"M{i}", (), {})() for i in range(3_000)]
y = w.exp()
y += 1
y.sum().backward()
# == threads without end
# %%
import threading
kernel = int(os.environ["HOSTILE_KERNEL"])
def spin():
    while os.getpid() != kernel: pass
y = w.exp()
for _ in range(20): threading.Thread(target=spin).start()
y += 1
y.sum().backward()
# == answer before the end
# %%
kernel = int(os.environ["HOSTILE_KERNEL"])
y = w.exp()
if os.getpid() != kernel: os._exit(0)
y += 1
y.sum().backward()
# == answer to the wrong door
# %%
kernel = int(os.environ["HOSTILE_KERNEL"])
import pickle, struct
class Bomb:
    def __reduce__(self): return os.system, ("echo boom >> boom.txt",)
y = w.exp()
if os.getpid() != kernel:
    data = pickle.dumps(Bomb())
    for fd in range(3, 64):
        try: os.write(fd, struct.pack("!Q", len(data)) + data)
        except OSError: pass
y += 1
y.sum().backward()
# == memory in small pieces
# %%
import numpy as np
elsewhere = int(os.environ["HOSTILE_KERNEL"]) != os.getpid()
kept = []
if elsewhere:
    for i in range(2000):
        kept.append("x" * 99_000); kept.append(np.ones(300_000)); kept.append(bytes(900_000)); kept.append(bytearray(900_000))
    kept.append([i] * 99_000)
y = w.exp()
y += 1
y.sum().backward()
