# %%
import torch

torch.manual_seed(0)
log_q = torch.tensor(-1.0, requires_grad=True)
log_r = torch.tensor(0.0, requires_grad=True)
F = torch.tensor([[1.0, 1.0], [0.0, 1.0]])
H = torch.tensor([[1.0, 0.0]], requires_grad=True)

def kalman_nll(obs):
    x, P = torch.zeros(2), torch.eye(2)
    nll = 0.0
    for z in obs:
        x = F @ x
        P = F @ P @ F.T + log_q.exp() * torch.eye(2)
        S = (H @ P @ H.T).squeeze() + log_r.exp()
        K = (P @ H.T).squeeze(1) / S
        r = z - (H @ x).squeeze()
        nll = nll + 0.5 * (r * r / S + S.log())
        x = x + K * r
        P -= torch.outer(K, H[0] @ P)
    return nll
# %%
obs = torch.linspace(0, 3, 6) + 0.2 * torch.randn(6)
nll = kalman_nll(obs)
nll.backward()
