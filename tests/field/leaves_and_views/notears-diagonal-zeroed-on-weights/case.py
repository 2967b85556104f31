# %%
import torch
import torch.nn as nn

torch.manual_seed(0)


class LinearSEM(nn.Module):
    """用加权邻接矩阵 W 描述线性结构方程 X = X W + noise"""

    def __init__(self, d):
        super().__init__()
        self.W = nn.Parameter(0.1 * torch.randn(d, d))

    def acyclicity(self):
        A = self.W * self.W
        return torch.trace(torch.matrix_exp(A)) - A.shape[0]

    def forward(self, X):
        self.W.fill_diagonal_(0.0)    # 节点不能指向自己
        return X @ self.W

# %%
def simulate(n, d):
    noise = torch.randn(n, d)
    X = torch.zeros(n, d)
    for j in range(d):
        X[:, j] = noise[:, j]
        if j > 0:
            X[:, j] += 0.8 * X[:, j - 1]
    return X - X.mean(dim=0)


X = simulate(100, 4)
sem = LinearSEM(4)
optimizer = torch.optim.Adam(sem.parameters(), lr=0.02)

# %%
rho, alpha = 1.0, 0.0
for it in range(20):
    residual = X - sem(X)
    h = sem.acyclicity()
    objective = 0.5 * residual.pow(2).mean() + 0.05 * sem.W.abs().sum() + alpha * h + 0.5 * rho * h * h
    optimizer.zero_grad()
    objective.backward()
    optimizer.step()
    if it % 10 == 9:
        alpha += rho * h.item()
        rho *= 2
print(sem.W.data, objective.item())
