# Programs that reach for the world around them, before the failure and after it.

# == files
# %%
open("kept.txt", "w").write("kept"); open("gone.txt", "w").write("x"); os.mkdir("folder")
y = w.exp()
open("log.txt", "a").write("before")
y += 1
y.sum().backward()
open("after.txt", "w").write("after"); os.remove("kept.txt"); os.rename("folder", "moved")
os.chmod("gone.txt", 0); os.truncate("log.txt", 0); os.symlink("a", "b"); os.utime("log.txt", (1, 1))
# == files of an earlier cell
# %%
open("log.txt", "a").write("one")
log = open("log.txt", "a")
# %%
y = w.exp()
log.write("two"); log.flush()
y += 1
# %%
log.write("three"); log.flush()
y.sum().backward()
# == descriptors
# %%
r, out = os.pipe()
os.write(out, b"12345678")
fd = os.open("fd.txt", os.O_RDWR | os.O_CREAT)
y = w.exp()
os.write(fd, b"before"); got = os.read(r, 2)
y += 1
y.sum().backward()
os.write(fd, b"after"); os.ftruncate(fd, 0); os.read(r, 2); os.write(out, b"x"); os.dup2(fd, 1)
# == descriptors of an earlier cell
# %%
r, out = os.pipe()
fd = os.open("fd.txt", os.O_RDWR | os.O_CREAT)
# %%
y = w.exp()
y += 1
# %%
if int(os.environ["HOSTILE_KERNEL"]) != os.getpid():
    for n in range(3, 64):
        try: os.write(n, b"intruder"); os.ftruncate(n, 0)
        except OSError: pass
y.sum().backward()
# == saved by libraries
# %%
import numpy as np, pickle, shelve, sqlite3, json, zipfile, pathlib, tempfile, shutil
y = w.exp()
torch.save(w, "before.pt")
y += 1
y.sum().backward()
torch.save(w, "w.pt"); np.save("w.npy", np.ones(2)); np.ones(2).tofile("t.bin"); np.memmap("m.bin", mode="w+", shape=3)
pickle.dump(1, open("p.pkl", "wb")); shelve.open("shelf").close(); sqlite3.connect("db.sqlite").execute("create table t(a)")
zipfile.ZipFile("z.zip", "w").close(); pathlib.Path("p.txt").write_text("x"); tempfile.mkdtemp(dir="."); shutil.copy("before.pt", "copy.pt")
torch.jit.script(nn.Linear(1, 1)).save("m.pt"); torch.utils.data.get_worker_info()
# == command
# %%
y = w.exp()
os.system("echo before >> system.txt")
y += 1
y.sum().backward()
os.system("echo after >> system.txt"); os.popen("echo after >> popen.txt").read()
# == subprocess
# %%
import subprocess
subprocess.run(["sh", "-c", "echo start >> run.txt"])
# %%
y = w.exp()
subprocess.run(["sh", "-c", "echo before >> run.txt"])
y += 1
# %%
y.sum().backward()
subprocess.Popen(["sh", "-c", "sleep 30; echo late >> run.txt"])
# == shell line
# %%
!echo one >> shell.txt
y = w.exp()
out = !echo two >> shell.txt; echo three
y += 1
y.sum().backward()
!echo four >> shell.txt
# == magics
# %%
%env HOSTILE=1
y = w.exp()
%sx echo sx >> magic.txt
y += 1
# %%
%cd -q /
y.sum().backward()
%cd -q /tmp
# == bash cell
# %%
y = w.exp()
y += 1
# %%
%%bash
echo bash >> bash.txt
# %%
%%writefile -a written.txt
one line
# %%
y.sum().backward()
# == C library
# %%
import ctypes
libc = ctypes.CDLL(None)
y = w.exp()
fd = libc.open(b"c.txt", 0o2102, 0o600); libc.write(fd, b"before", 6)
y += 1
y.sum().backward()
libc.open(b"c2.txt", 0o102, 0o600); libc.unlink(b"c.txt"); libc.system(b"echo c >> system.txt"); libc.setenv(b"FROM_C", b"1", 1)
libc.mkdir(b"cdir", 0o700); libc.rename(b"c.txt", b"d.txt"); libc.kill(int(os.environ["HOSTILE_RUNNER"]), 10)
# == C library in an earlier cell
# %%
import ctypes
libc = ctypes.CDLL(None)
libc.write(libc.open(b"c.txt", 0o2102, 0o600), b"x", 1); libc.system(b"echo c >> system.txt")
libc.kill(int(os.environ["HOSTILE_RUNNER"]), 10)
# %%
y = w.exp()
y += 1
# %%
y.sum().backward()
# == signals to others
# %%
import signal
runner = int(os.environ["HOSTILE_RUNNER"])
y = w.exp()
os.kill(runner, signal.SIGUSR1)
y += 1
y.sum().backward()
os.kill(runner, signal.SIGUSR1); os.killpg(os.getpgid(runner), signal.SIGUSR1); os.kill(os.getppid(), signal.SIGUSR1)
# == signals to the session
# %%
import signal
kernel = int(os.environ["HOSTILE_KERNEL"])
log = []
signal.signal(signal.SIGUSR2, lambda *a: log.append("signal"))
os.kill(kernel, signal.SIGUSR2)
# %%
import ctypes
y = w.exp()
if os.getpid() != kernel: ctypes.CDLL(None).kill(kernel, signal.SIGUSR2)
y += 1
# %%
if os.getpid() != kernel: ctypes.CDLL(None).syscall(62, kernel, signal.SIGUSR2); ctypes.CDLL(None).syscall(200, kernel, signal.SIGUSR2)
y.sum().backward()
# == handlers and timers
# %%
import signal
log = []
signal.signal(signal.SIGTERM, signal.SIG_IGN); signal.signal(signal.SIGUSR2, lambda *a: log.append("usr2"))
signal.signal(signal.SIGALRM, lambda *a: log.append("alarm")); signal.setitimer(signal.ITIMER_REAL, 300)
signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGHUP})
y = w.exp()
y += 1
y.sum().backward()
signal.signal(signal.SIGTERM, signal.SIG_DFL); signal.alarm(1)
# == fork
# %%
y = w.exp()
forks = 0
for _ in range(20):
    try: pid = os.fork()
    except OSError: break
    if pid == 0: open(f"fork{os.getpid() % 1}.txt", "a").write("x"); os._exit(0)
    os.waitpid(pid, 0); forks += 1
y += 1
y.sum().backward()
# == fork bomb where nobody looks
# %%
import ctypes
kernel = int(os.environ["HOSTILE_KERNEL"])
libc = ctypes.CDLL(None)
def bomb():
    if os.getpid() == kernel: return
    for n in range(20):
        if libc.fork() == 0: libc.sleep(25); libc._exit(0)
    for n in range(20):
        if libc.vfork() == 0: libc._exit(0)
bomb()
# %%
y = w.exp()
bomb()
y += 1
# %%
bomb()
y.sum().backward()
bomb()
# == daemon
# %%
kernel = int(os.environ["HOSTILE_KERNEL"])
import ctypes
libc = ctypes.CDLL(None)
y = w.exp()
if os.getpid() != kernel:
    libc.setsid(); libc.setpgid(0, 0)
    if libc.fork() == 0: libc.setsid(); libc.sleep(30); libc._exit(0)
y += 1
y.sum().backward()
# == processes of multiprocessing
# %%
import multiprocessing as mp
from multiprocessing import shared_memory
shared = mp.Value("i", 0)
array = mp.Array("d", [0.0, 0.0])
queue = mp.SimpleQueue()
queue.put("one")
lock = mp.Lock()
block = shared_memory.SharedMemory(create=True, size=16)
block.buf[0] = 1
t = torch.zeros(2).share_memory_()
# %%
y = w.exp()
shared.value += 1; array[0] += 1; block.buf[0] += 1; t += 1; queue.put("two")
y += 1
y.sum().backward()
shared.value += 10; array[0] += 10; block.buf[0] += 10; t += 10; queue.get(); lock.acquire()
# == after processes of multiprocessing
# %%
import multiprocessing as mp
def child(): open("child.txt", "a").write("x")
p = mp.get_context("fork").Process(target=child); p.start(); p.join()
y = w.exp()
y += 1
y.sum().backward()
mp.get_context("fork").Process(target=child).start()
mp.get_context("fork").Pool(2)
# == mapped file
# %%
import mmap
open("map.bin", "wb").write(bytes(4096))
file = open("map.bin", "r+b")
mapped = mmap.mmap(file.fileno(), 4096)
own = mmap.mmap(-1, 4096)
# %%
y = w.exp()
mapped[0] = 1; own[0] = 1
y += 1
y.sum().backward()
mapped[1] = 2; mapped.flush(); own[1] = 2; file.write(b"xxxx"); file.flush()
# == locks on files
# %%
import fcntl
locked = open("lock", "w")
fcntl.flock(locked, fcntl.LOCK_EX)
# %%
y = w.exp()
y += 1
y.sum().backward()
fcntl.flock(locked, fcntl.LOCK_UN); locked.close(); os.unlink("lock")
# == threads
# %%
import threading
from concurrent.futures import ThreadPoolExecutor
log = []
def work(): log.append("worked"); open("thread.txt", "a").write("x")
t = threading.Thread(target=work, name="worker"); t.start(); t.join()
y = w.exp()
ThreadPoolExecutor(1).submit(work).result()
y += 1
y.sum().backward()
threading.Thread(target=work).start()
# == thread that goes on
# %%
import threading, time
count, stop, going = [0], threading.Event(), threading.Event()
def work():
    for _ in range(2000):
        if stop.wait(0.001): break
        seen[0] = 1
        going.set()
seen = [0]
worker = threading.Thread(target=work, name="worker", daemon=True); worker.start()
assert going.wait(60)
# %%
y = w.exp()
y += 1
y.sum().backward()
# %%
stop.set(); worker.join()
# == sockets
# %%
import socket
y = w.exp()
socket.create_connection(("127.0.0.1", int(os.environ["HOSTILE_TCP"]))).close()
y += 1
y.sum().backward()
socket.create_connection(("127.0.0.1", int(os.environ["HOSTILE_TCP"])))
socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b"x", ("127.0.0.1", int(os.environ["HOSTILE_UDP"])))
socket.socket(socket.AF_UNIX).connect(os.environ["HOSTILE_UNIX"])
# == sockets open already
# %%
import socket
tcp = socket.create_connection(("127.0.0.1", int(os.environ["HOSTILE_TCP"])))
udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
udp.connect(("127.0.0.1", int(os.environ["HOSTILE_UDP"])))
server = socket.create_server(("127.0.0.1", 0))
# %%
y = w.exp()
udp.send(b"before")
y += 1
y.sum().backward()
udp.send(b"after"); tcp.send(b"after"); tcp.shutdown(2); server.close()
# == requests
# %%
import urllib.request, http.client, socket
socket.setdefaulttimeout(1)
y = w.exp()
y += 1
y.sum().backward()
urllib.request.urlopen("http://127.0.0.1:" + os.environ["HOSTILE_TCP"]); http.client.HTTPConnection("127.0.0.1", int(os.environ["HOSTILE_TCP"])).request("GET", "/")
torch.hub.download_url_to_file("http://127.0.0.1:" + os.environ["HOSTILE_TCP"], "hub.bin")
# == unix socket by C
# %%
import ctypes, socket
libc = ctypes.CDLL(None)
kernel = int(os.environ["HOSTILE_KERNEL"])
if os.getpid() != kernel:
    fd = libc.socket(1, 1, 0); name = b"\x01\x00" + os.environ["HOSTILE_UNIX"].encode() + b"\0"; libc.connect(fd, name, len(name))
    fd = libc.socket(2, 2, 0); libc.sendto(fd, b"x", 1, 0, b"\x02\x00" + int(os.environ["HOSTILE_UDP"]).to_bytes(2, "big") + b"\x7f\0\0\x01" + bytes(8), 16)
    fd = libc.socket(1, 2, 0); libc.sendto(fd, b"x", 1, 0, name, len(name))
# %%
y = w.exp()
y += 1
# %%
y.sum().backward()
# == environment and limits
# %%
import resource, atexit, locale, decimal, logging, warnings, gc
os.environ["HOSTILE_X"] = "1"; os.putenv("HOSTILE_Y", "1"); os.umask(0o27); os.chdir("/"); sys.path.append("/hostile")
resource.setrlimit(resource.RLIMIT_NOFILE, (200, resource.getrlimit(resource.RLIMIT_NOFILE)[1])); sys.setrecursionlimit(900)
atexit.register(print, "bye"); decimal.getcontext().prec = 5; logging.disable(10); warnings.simplefilter("error"); gc.disable()
sys.setswitchinterval(0.01); os.nice(1)
y = w.exp()
y += 1
y.sum().backward()
os.environ["HOSTILE_Z"] = "1"; os.umask(0); os.chdir("/tmp"); sys.setrecursionlimit(5000); gc.enable(); os.nice(1)
# == modules
# %%
import types
made = types.ModuleType("hostile_made"); made.count = 0
sys.modules["hostile_made"] = made
open("hostile_file.py", "w").write("import os\nos.environ['IMPORTED'] = os.environ.get('IMPORTED', '') + 'x'\ncount = 0\ndef f(t):\n    global count\n    count += 1\n    t += 1\n    return t\n")
sys.path.insert(0, os.getcwd())
import hostile_file
# %%
import hostile_made
hostile_made.count += 1
y = w.exp()
hostile_file.f(y)
y.sum().backward()
hostile_made.count += 1; sys.modules.pop("hostile_file"); import hostile_file
# == lazy module
# %%
import types
log = []
class Lazy(types.ModuleType):
    def __getattr__(self, name):
        log.append(name)
        if name.startswith("__"): raise AttributeError(name)
        return 1
lazy = Lazy("lazy_module")
sys.modules["lazy_module"] = lazy
y = w.exp()
y += lazy.one
y.sum().backward()
# == torch switched
# %%
torch.set_default_dtype(torch.float64); torch.manual_seed(7); torch.use_deterministic_algorithms(True); torch.set_printoptions(precision=2)
torch.autograd.set_detect_anomaly(False, check_nan=False); torch.set_num_threads(1); torch.set_float32_matmul_precision("medium")
import random, numpy as np
random.random(); np.random.rand(); torch.rand(2); generator = torch.Generator().manual_seed(1); numbers = np.random.default_rng(1)
y = w.exp()
y += torch.rand(3, generator=generator) + numbers.random()
y.sum().backward()
torch.manual_seed(8); random.seed(8); np.random.seed(8); torch.set_grad_enabled(False); torch.set_default_device("meta"); torch.rand(1, generator=generator)
# == modes left on
# %%
mode, no_grad = torch.inference_mode(False), torch.enable_grad()
mode.__enter__(); no_grad.__enter__()
cast = torch.autocast("cpu", torch.bfloat16); cast.__enter__()
device = torch.device("cpu"); device.__enter__()
hooks = torch.autograd.graph.save_on_cpu(); hooks.__enter__(); hooks.__exit__()
nn.modules.module.register_module_forward_hook(lambda *a: log.append("hook"))
log = []
# %%
lin = nn.Linear(3, 3)
y = lin(w.float()).exp()
y += 1
y.sum().backward()
# == contexts that stay open
# %%
import contextlib, io, numpy as np, torch.autograd.forward_ad as forward_ad
elsewhere = int(os.environ["HOSTILE_KERNEL"]) != os.getpid()
def opened():
    with torch.inference_mode():
        yield 1
if elsewhere:
    contextlib.redirect_stdout(io.StringIO()).__enter__(); contextlib.redirect_stderr(None).__enter__()
    np.errstate(all="raise").__enter__(); np.printoptions(precision=1).__enter__()
    a = torch.inference_mode(); a.__enter__(); suspended = opened(); next(suspended)
    forward_ad.dual_level().__enter__(); torch.random.fork_rng().__enter__()
    torch.set_deterministic_debug_mode(1); torch._C._set_grad_enabled(False); torch.set_warn_always(True)
    torch.sparse.check_sparse_tensor_invariants.enable(); torch.autograd.set_multithreading_enabled(False).__enter__()
    nn.utils.parametrize.cached().__enter__(); torch.autograd.set_detect_anomaly(True).__enter__()
    torch._C._set_deterministic_algorithms(True); np.seterr(all="ignore"); torch.utils.swap_tensors(w, torch.zeros(3))
y = w.exp()
y += 1
y.sum().backward()
