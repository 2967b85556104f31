# Names, strings and sources that would act on a terminal or in a page.

# == markup in names
# %%
table = {"<img src=x onerror=alert(1)>": w.exp(), "</code><script>alert(2)</script>": 1}
table["<img src=x onerror=alert(1)>"] += 1
table["<img src=x onerror=alert(1)>"].sum().backward()
# == markup in attributes
# %%
class Box: pass
box = Box()
setattr(box, "<b onclick='x'>", w.exp()); setattr(box, "a\x1b[31m", 1)
y = getattr(box, "<b onclick='x'>")
y += 1
y.sum().backward()
# == markup in the source
# %%
y = w.exp()  # <script>alert(1)</script> <img src=x onerror=alert(1)> {{7*7}} {% raw %} &lt; "'
y += 1; s = "</code></pre><svg onload=alert(1)><a href='javascript:alert(1)'>x</a>"
y.sum().backward()  # [red]rich[/red] [link=http://x]y[/link] **bold** `code` <!-- -->
# == markdown in names
# %%
d = {"`code` **bold** [x](javascript:alert(1)) <b>": w.exp(), "```\n# head": 1}
d["`code` **bold** [x](javascript:alert(1)) <b>"] += 1
d["`code` **bold** [x](javascript:alert(1)) <b>"].sum().backward()
# == placeholders in names
# %%
d = {"{name} {0} {{culprit}} %s {write!r}": w.exp()}
d["{name} {0} {{culprit}} %s {write!r}"] += 1
d["{name} {0} {{culprit}} %s {write!r}"].sum().backward()
# == escapes in keys
# %%
key = "a\x1b[31mred\x1b]8;;http://x\x07link\x1b]8;;\x07\x9b31m\x00\r\b\x7f"
d = {key: w.exp()}
d[key] += 1
d[key].sum().backward()
# == escapes in the source
# %%
y = w.exp()  # [31mred ]0;title ]52;c;ZXZpbA== 31mc1
y += 1  # back  next
y.sum().backward()
# == directions in the source
# %%
y = w.exp()  # ‮ reversed ⁦ isolated ⁩ ‬ ‏right‎left؜
s = "‮⁦ y += 2 ⁩⁦"; y += 1  # ​zero​width﻿
y.sum().backward()
# == directions in names
# %%
d = {"‮evil⁦": w.exp(), "​": 1}
d["‮evil⁦"] += 1
d["‮evil⁦"].sum().backward()
# == lines in keys
# %%
d = {"a\nb\r\nc\x0b\x0c\x1c\x85\u2028\u2029": w.exp()}
for k in d:
    d[k] += 1
    d[k].sum().backward()
# == class names
# %%
Evil = type("<script>alert(1)</script>\x1b[31m\u202e", (nn.Module,), {"forward": lambda self, x: x.exp()})
net = Evil()
net.add_module("<b>\x1b]0;x\x07", nn.Linear(3, 3))
y = net(w)
y += 1
y.sum().backward()
# == function names
# %%
def step(x):
    y = x.exp()
    y += 1
    return y
step.__qualname__ = step.__name__ = "<img src=x>\x1b[31m\u202e"
step.__code__ = step.__code__.replace(co_name="<img src=x>\x1b[31m\u202e")
step(w).sum().backward()
# == messages
# %%
class Bad(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x): return x.clone()
    @staticmethod
    def backward(ctx, g):
        raise RuntimeError("one of the variables needed for gradient computation has been modified by an inplace operation: [<img src=x onerror=1>\x1b[31m\u202e\udc80 [1]] is at version 1; expected version 0 instead. \x1b]0;x\x07")
Bad.apply(w).sum().backward()
# == warnings
# %%
import warnings
y = w.exp()
warnings.warn("The .grad attribute of a Tensor that is not a leaf <script>alert(1)</script> \x1b[31m\u202e")
y.grad
y += 1
y.sum().backward()
# == surrogates
# %%
d = {"\udc80\ud800": w.exp()}
k = "\udc80\ud800"
setattr(nn, "\udcff", 1); delattr(nn, "\udcff")
d[k] += 1
d[k].sum().backward()
# == file names
# %%
name = "<b>\x1b[31mevil\u202e[x](y).py"
open(name, "w").write("def step(x):\n    y = x.exp()\n    y += 1\n    return y\n")
namespace = {}
exec(compile(open(name).read(), os.path.abspath(name), "exec"), namespace)
namespace["step"](w).sum().backward()
# == names of other scripts
# %%
переменная = w.exp()
ﬁeld = 1
名前 = переменная
名前 += 1
переменная.sum().backward()
# == blank names
# %%
d = {"": w.exp(), " ": 1, "ㅤ": 2}
ㅤ = d[""]
ㅤ += 1
ㅤ.sum().backward()
# == wide and long
# %%
d = {"漢" * 500 + "👩‍👩‍👧‍👦" * 50 + "é̷̈̂" * 100: w.exp()}
k = next(iter(d))
d[k] += 1
d[k].sum().backward()
# == magic words
# %%
y = w.exp()
y += 1  #%autograd_fix %config x !ls $HOME {y} ;?
y.sum().backward()
# == formats
# %%
class Spec:
    def __format__(self, spec): open("format.txt", "a").write("x"); return "<b>"
y = w.exp()
y += len(f"{Spec()!s:>{1}}" f"{Spec():{Spec()}}")
y.sum().backward()
# == quotes
# %%
d = {"'\"\\": w.exp(), '"""': 1, "'''": 2}
d["'\"\\"] += 1
d["'\"\\"].sum().backward()
