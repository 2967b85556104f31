"""A tensor that is asked for its gradient after the values had been read.

A row is a notebook, the culprit, and the line that asks; the first rewrite lets it run.
"""

from __future__ import annotations

import pytest
from knowledge.played import edited, explained, play
from knowledge.test_cases import run

from autograd_explain.model import What
from autograd_explain.render.topic_content import cells_of

START = """# %%
import torch
from torch import nn
torch.manual_seed(0)
net = nn.Linear(3, 2)
# %%
"""
PROGRAMS: dict[str, tuple[str, str, str]] = {
    "an input that is normalised first": (
        "image = torch.rand(4, 3)\ninp = (image - 0.5) / 0.5\nimage.requires_grad = True\n"
        "net(inp).sum().backward()\nprint(image.grad.abs())\n",
        "image",
        "image.requires_grad = True",
    ),
    "features of another cell": (
        "pos = torch.rand(4, 3)\nfeatures = pos.square()\n# %%\npos.requires_grad_(True)\n"
        "energy = net(features).sum()\nforce = torch.autograd.grad(energy, pos)[0]\n",
        "pos",
        "pos.requires_grad_(True)",
    ),
    "flags of several that a loop sets": (
        "from types import SimpleNamespace\n"
        "items = [SimpleNamespace(x=torch.rand(3)) for _ in range(2)]\n"
        "rows = torch.stack([p.x for p in items])\n# %%\nfor p in items:\n"
        "    p.x.requires_grad_()\nloss = (rows - 1).square().sum()\nloss.backward()\n"
        "print(items[0].x.grad.abs())\n",
        "p.x",
        "p.x.requires_grad_()",
    ),
    "a result without any graph": (
        "theta = torch.rand(3)\npred = theta.square().sum()\ntheta.requires_grad_()\n"
        "(pred - 1).square().backward()\n",
        "theta",
        "theta.requires_grad_()",
    ),
    "inside a function": (
        "def attack(x):\n    adv = x.clone()\n    out = net(adv)\n    adv.requires_grad = True\n"
        "    out.sum().backward()\n    return adv + adv.grad.sign()\nattack(torch.rand(4, 3))\n",
        "adv",
        "adv.requires_grad = True",
    ),
    "a part of an object": (
        "batch = {'x': torch.rand(4, 3)}\nbatch['y'] = batch['x'] * 2\n"
        "batch['x'].requires_grad_()\ne = net(batch['y']).sum()\n"
        "torch.autograd.grad(e, batch['x'])\n",
        "batch['x']",
        "batch['x'].requires_grad_()",
    ),
    "an attribute under another name": (
        "from types import SimpleNamespace\nframe = SimpleNamespace(pos=torch.rand(4, 3), n=4)\n"
        "# %%\ndef force(frame):\n    e = net(frame.pos).sum() * frame.n\n"
        "    pos = frame.pos.requires_grad_(True)\n    return torch.autograd.grad(e, pos)[0]\n"
        "force(frame)\n",
        "frame.pos",
        "pos = frame.pos.requires_grad_(True)",
    ),
    "of an object that a helper hands back": (
        "from types import SimpleNamespace\ndef scaled(frame, k):\n    frame.near = k * frame.pos\n"
        "    return frame\n# %%\nframe = SimpleNamespace(pos=torch.rand(4, 3))\n"
        "frame = scaled(frame, 2)\nframe.pos.requires_grad = True\nu = net(frame.near).sum()\n"
        "torch.autograd.grad(u, frame.pos)\n",
        "frame.pos",
        "frame.pos.requires_grad = True",
    ),
    "a copy that is made too late": (
        "x = torch.rand(4, 3)\ny = net(x)\n# %%\nleaf = nn.Parameter(x.clone())\n"
        "torch.autograd.grad(y.sum(), leaf)\n",
        "leaf",
        "leaf = nn.Parameter(x.clone())",
    ),
    "in a function that gets what was computed, too": (
        "def guidance(z, mean, scale):\n    z = z.detach().requires_grad_(True)\n"
        "    loss = (mean * scale).square().mean()\n    return torch.autograd.grad(loss, z)[0]\n"
        "# %%\nlatents = torch.rand(4, 3)\nfor step in range(2):\n    pred = net(latents)\n"
        "    latents = latents - guidance(latents, pred * 2, 3.0)\n",
        "z",
        "z = z.detach().requires_grad_(True)",
    ),
    "in a method, after a copy": (
        "class Guide:\n    def __call__(self, x_t, out):\n        x_t = x_t.clone().detach()\n"
        "        x_t.requires_grad = True\n        norm = torch.linalg.norm(out)\n"
        "        return torch.autograd.grad(outputs=norm, inputs=x_t)[0]\nguide = Guide()\n"
        "# %%\ndef sample():\n    img = torch.rand(4, 3)\n    out = net(img)\n"
        "    return guide(x_t=img, out=out)\nsample()\n",
        "img",
        "x_t.requires_grad = True",
    ),
    "a copy made in such a function": (
        "def saliency(images, scores):\n    probe = images.clone().requires_grad_(True)\n"
        "    return torch.autograd.grad(scores.max(), probe)[0]\n"
        "batch = torch.rand(4, 3)\nsaliency(batch, net(batch).softmax(1))\n",
        "probe",
        "probe = images.clone().requires_grad_(True)",
    ),
    "on the tensor itself, in such a function": (
        "def penalty(images, logits):\n    images.requires_grad_(True)\n"
        "    slope, = torch.autograd.grad(logits.sum(), images, create_graph=True)\n"
        "    return slope.square().sum()\n"
        "# %%\ndef step(real):\n    logits = net(real * 2 - 1)\n"
        "    return logits.mean() + penalty(real, logits)\nstep(torch.rand(4, 3)).backward()\n",
        "real",
        "images.requires_grad_(True)",
    ),
    "two functions further in": (
        "def slope(x, score):\n    x.requires_grad = True\n"
        "    return torch.autograd.grad(score, x)[0]\n"
        "def of_class(x, scores):\n    picked = scores[:, 0].sum()\n    return slope(x, picked)\n"
        "# %%\ndef saliency(images):\n    scores = net(images)\n"
        "    return of_class(images, scores)\nsaliency(torch.rand(4, 3))\n",
        "images",
        "x.requires_grad = True",
    ),
    "for each of two inputs": (
        "def penalty(out, x):\n    x.requires_grad_()\n"
        "    return torch.autograd.grad(out.sum(), x, create_graph=True)[0].square().sum()\n"
        "# %%\ndef step(real):\n    fake = torch.rand(real.shape)\n    on_real = net(real)\n"
        "    on_fake = net(fake)\n    return penalty(on_real, real) + penalty(on_fake, fake)\n"
        "step(torch.rand(4, 3)).backward()\n",
        "real",
        "x.requires_grad_()",
    ),
    "a part of what was handed on": (
        "def forces(batch, energy):\n    pos = batch['pos']\n    pos.requires_grad_()\n"
        "    return -torch.autograd.grad(energy.sum(), pos)[0]\n"
        "# %%\ndef model(batch):\n    return net(batch['pos'])\n"
        "for batch in [{'pos': torch.rand(4, 3)}]:\n    energy = model(batch)\n"
        "    forces(batch, energy)\n",
        "pos",
        "pos.requires_grad_()",
    ),
    "by a function that is called too late": (
        "def watch(points):\n    points.requires_grad_(True)\n    return points\n"
        "# %%\ndef normal(xyz):\n    sdf = net(xyz)\n    xyz = watch(xyz)\n"
        "    return torch.autograd.grad(sdf.sum(), xyz)[0]\nnormal(torch.rand(4, 3))\n",
        "xyz",
        "points.requires_grad_(True)",
    ),
    "two of which one value is made": (
        "x, t = torch.rand(4, 1), torch.rand(4, 2)\nxt = torch.cat([x, t], 1)\n# %%\n"
        "x.requires_grad_()\nt.requires_grad_()\nu = net(xt).sum()\n"
        "torch.autograd.grad(u, t, create_graph=True)\ntorch.autograd.grad(u, x)\n",
        "t",
        "t.requires_grad_()",
    ),
    "two that came from one call with what is made of them": (
        "def drawn(n):\n    a, b = torch.rand(n, 1), torch.rand(n, 2)\n"
        "    return a, b, torch.cat([a, b], 1) * 2\n"
        "def residual(x, t, xt):\n    x.requires_grad_()\n    t.requires_grad_()\n    u = net(xt)\n"
        "    u_t = torch.autograd.grad(u.sum(), t, create_graph=True)[0]\n"
        "    return u_t.sum() + torch.autograd.grad(u.sum(), x)[0].sum()\n"
        "# %%\nfor step in range(2):\n    x, t, xt = drawn(4)\n    residual(x, t, xt).backward()\n",
        "t",
        "t.requires_grad_()",
    ),
    "read in one branch or the other": (
        "def slope(x, out):\n    x.requires_grad_()\n"
        "    return torch.autograd.grad(out.sum(), x)[0]\n"
        "# %%\ndef step(x, flip):\n    if flip:\n        h = x.flip(0)\n    else:\n"
        "        h = x * 1\n    out = net(h)\n    return slope(x, out)\n"
        "step(torch.rand(4, 3), False)\n",
        "x",
        "x.requires_grad_()",
    ),
    "once for all rounds of a loop": (
        "pos = torch.rand(4, 3)\nstep = pos[1:] - pos[:-1]\nlength = step * 2\n# %%\n"
        "pos.requires_grad_()\nfor _ in range(2):\n    e = net(length).square().sum()\n"
        "    f = torch.autograd.grad(e, pos, create_graph=True)[0]\n    f.sum().backward()\n",
        "pos",
        "pos.requires_grad_()",
    ),
    "once, by the caller of a function in a loop": (
        "x = torch.rand(4, 3)\nz = x * 2\ndef slope(points, given):\n"
        "    points.requires_grad_()\n    u = net(given).square().sum()\n"
        "    return torch.autograd.grad(u, points, create_graph=True)[0]\n"
        "# %%\nfor _ in range(2):\n    s = slope(x, z)\n    s.sum().backward()\n",
        "x",
        "points.requires_grad_()",
    ),
    "a global value that a function reads": (
        "pos = torch.rand(4, 3)\nfeatures = pos.square()\ndef step():\n"
        "    pos.requires_grad_()\n    e = net(features).square().sum()\n"
        "    f = torch.autograd.grad(e, pos, create_graph=True)[0]\n    f.sum().backward()\n"
        "# %%\nfor _ in range(2):\n    step()\n",
        "pos",
        "pos.requires_grad_()",
    ),
    "what one function returned with it": (
        "def graph(n):\n    p = torch.rand(n, 3)\n    near = torch.cdist(p, p) > 0\n"
        "    i, j = near.nonzero(as_tuple=True)\n    vec = p[j] - p[i]\n    return p, j, vec\n"
        "pos, target, edges = graph(4)\n# %%\npos.requires_grad_()\ne = net(edges).sum()\n"
        "force = torch.autograd.grad(e, pos)[0]\n",
        "pos",
        "pos.requires_grad_()",
    ),
    "what a constructor keeps beside it": (
        "class Molecule:\n    def __init__(self, xyz):\n        self.xyz = xyz\n"
        "        self.order = torch.arange(len(xyz)).flip(0)\n"
        "        self.apart = xyz[self.order] - xyz\n"
        "class Energy(nn.Module):\n    def forward(self, m):\n        return net(m.apart).sum()\n"
        "energy = Energy()\ndef forces(m):\n    m.xyz.requires_grad_()\n    e = energy(m)\n"
        "    return torch.autograd.grad(e ** 2, m.xyz, create_graph=True)[0]\n"
        "# %%\nall = [Molecule(torch.rand(4, 3)) for _ in range(2)]\nfor m in all * 2:\n"
        "    forces(m).sum().backward()\n",
        "m.xyz",
        "m.xyz.requires_grad_()",
    ),
    "what a package's object is given beside it": (
        "from types import SimpleNamespace\np = torch.rand(4, 3)\nfar = 3 - p\n"
        "data = SimpleNamespace(pos=p, near=p * 2, far=far)\nclass Energy(nn.Module):\n"
        "    def forward(self, d):\n        return net(d.near + d.far).square().sum()\n"
        "energy = Energy()\n# %%\nfor _ in range(2):\n    data.pos.requires_grad_()\n"
        "    e = energy(data)\n"
        "    f = torch.autograd.grad(e, data.pos, create_graph=True)[0]\n    f.sum().backward()\n",
        "data.pos",
        "data.pos.requires_grad_()",
    ),
    "what a data set hands out beside it": (
        "class Points(torch.utils.data.Dataset):\n    def __len__(self):\n        return 4\n"
        "    def __getitem__(self, i):\n        p = torch.rand(5, 3)\n"
        "        return {'p': p, 'near': torch.cdist(p, p), 'far': 3 - p}\n"
        "# %%\nfor batch in torch.utils.data.DataLoader(Points(), 2):\n"
        "    p = batch['p'].requires_grad_()\n"
        "    e = (lambda b: net(b['far']).square().sum())(batch)\n"
        "    torch.autograd.grad(e, p)\n",
        "p",
        "p = batch['p'].requires_grad_()",
    ),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_program(name: str) -> None:
    text, culprit, line = PROGRAMS[name]
    cells = cells_of(START + text)
    found = explained(cells)
    assert found.finding.cause == "flag_set_late"
    assert culprit in found.finding.tensors[0].names
    place = found.finding.place(What.CAUSE)
    assert place is not None and place.source == line
    run(edited(cells, found.rewrites[0]))


OTHERS = {
    "the flag of the next round": (
        "x = torch.rand(4, 3, requires_grad=True)\nfor _ in range(2):\n"
        "    net(x.detach()).sum().backward()\n"
        "    x = (x - x.grad).detach().requires_grad_()\n"
    ),
    "a copy that nothing is computed of": (
        "x = torch.rand(4, 3)\nprint(x)\nx.requires_grad_()\ny = net(x.detach()).sum()\n"
        "torch.autograd.grad(y, x)\n"
    ),
    "a function that gets what was computed from something else": (
        "def penalty(x, out):\n    x = x.detach().requires_grad_()\n"
        "    return torch.autograd.grad(out.sum(), x)[0]\n"
        "a, b = torch.rand(4, 3), torch.rand(4, 3)\npenalty(a, net(b))\n"
    ),
    "a tensor that was flagged when it was made": (
        "def penalty(x, out):\n    x.requires_grad_()\n"
        "    return torch.autograd.grad(out.sum(), x)[0]\n"
        "x = torch.rand(4, 3, requires_grad=True)\nout = net(torch.tensor(x.tolist()))\n"
        "penalty(x, out)\n"
    ),
    "a result, for which the flag says nothing": (
        "def penalty(x, out):\n    x.requires_grad_()\n"
        "    return torch.autograd.grad(out.sum(), x)[0]\n"
        "def step(z):\n    fake = net(z)\n    out = torch.tensor(fake.tolist()) * net.bias\n"
        "    return penalty(fake, out)\nstep(torch.rand(4, 3))\n"
    ),
    "a tensor of which only the shape was read": (
        "def penalty(x, out):\n    x.requires_grad_()\n"
        "    return torch.autograd.grad(out.sum(), x)[0]\n"
        "def step(x):\n    out = net(torch.ones(x.shape))\n    return penalty(x, out)\n"
        "step(torch.rand(4, 3))\n"
    ),
    "a module that was made of the tensor's values": (
        "class Table(nn.Module):\n    def __init__(self, x):\n        super().__init__()\n"
        "        self.scale = nn.Parameter(x.mean(0))\n    def forward(self):\n"
        "        return self.scale * 2\nx = torch.rand(4, 3)\ntable = Table(x)\n# %%\n"
        "def slope():\n    x.requires_grad_()\n"
        "    return torch.autograd.grad(table().sum(), x)\nslope()\n"
    ),
    "a field that is made of another object's": (
        "from types import SimpleNamespace\ndef near(a, b):\n    b.pos = torch.rand(4, 3)\n"
        "    b.near = a.pos * 2\n    return b\n# %%\n"
        "one = SimpleNamespace(pos=torch.rand(4, 3))\nall = [near(one, SimpleNamespace())]\n"
        "for two in all:\n    two.pos.requires_grad_()\n"
        "    torch.autograd.grad(net(two.near).sum(), two.pos)\n"
    ),
}


@pytest.mark.parametrize("name", OTHERS)
def test_other_cause(name: str) -> None:
    found = play(cells_of(START + OTHERS[name])).diagnosis
    assert found is not None and found.finding.cause != "flag_set_late"


def test_what_is_not_recorded_is_no_use_and_a_branch_stays_behind_what_it_needs() -> None:
    found = explained(
        cells_of(
            START + "x = torch.rand(4, 3)\nfor i in range(2):\n"
            "    with torch.no_grad():\n        noise = net(x).sum()\n    clean = net(x - noise)\n"
            "    if i == 0:\n        x = x.detach().requires_grad_()\n"
            "        x = x - torch.autograd.grad(clean.sum(), x)[0]\n    x = x - noise\n"
        )
    )
    assert found.finding.cause == "flag_set_late" and not found.rewrites
    place = found.finding.place(What.CREATED)
    assert place is not None and place.source.endswith("net(x - noise)")


def test_an_item_computed_by_positions_of_dimensions_is_not_computed_of_a_batch() -> None:
    found = explained(
        cells_of(
            START + "class Points(torch.utils.data.Dataset):\n    def __len__(self):\n"
            "        return 4\n    def __getitem__(self, i):\n        p = torch.rand(5, 3)\n"
            "        return {'p': p, 'apart': p[:, None] - p[None]}\n"
            "# %%\nfor batch in torch.utils.data.DataLoader(Points(), 2):\n"
            "    p = batch['p'].requires_grad_()\n    e = net(batch['apart']).sum()\n"
            "    torch.autograd.grad(e, p)\n"
        )
    )
    assert found.finding.cause == "flag_set_late" and not found.rewrites
    place = found.finding.place(What.CREATED)
    assert place is not None and place.line == 6
