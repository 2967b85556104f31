# %%
import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(0)


class Client:
    def __init__(self, n):
        self.x = torch.randn(n, 4)
        self.y = (self.x[:, 0] > 0).long()
        self.model = nn.Linear(4, 2)
        self.opt = torch.optim.SGD(self.model.parameters(), lr=0.5)

    def pull(self, weights):
        self.model.load_state_dict(weights)

    def train(self, epochs=2):
        for _ in range(epochs):
            self.opt.zero_grad()
            F.cross_entropy(self.model(self.x), self.y).backward()
            self.opt.step()

    def test(self):
        self.model.eval()
        out = self.model(self.x)
        loss = F.cross_entropy(out, self.y)
        correct = (out.argmax(dim=1) == self.y).sum().item()
        return len(self.y), correct, loss
# %%
class Server:
    def __init__(self, sizes):
        self.clients = [Client(n) for n in sizes]
        self.weights = self.clients[0].model.state_dict()

    def aggregate(self):
        states = [c.model.state_dict() for c in self.clients]
        self.weights = {k: sum(s[k] for s in states) / len(states) for k in states[0]}

    def evaluate(self):
        ns, correct, losses = zip(*[c.test() for c in self.clients])
        glob_acc = np.sum(correct) / np.sum(ns)
        glob_loss = np.sum([n * l for n, l in zip(ns, losses)]).item() / np.sum(ns)
        return glob_acc, glob_loss
# %%
server = Server([30, 10, 20])
for rnd in range(3):
    for client in server.clients:
        client.pull(server.weights)
        client.train()
    server.aggregate()
    glob_acc, glob_loss = server.evaluate()
    print(rnd, glob_acc, glob_loss)
