# %%
import torch
import torch.nn as nn

torch.manual_seed(0)


class Reverse(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, lam):
        ctx.lam = lam
        return x.view_as(x)

    @staticmethod
    def backward(ctx, grad):
        return -ctx.lam * grad, None


extractor = nn.Sequential(nn.Linear(5, 12), nn.ReLU(inplace=True), nn.Linear(12, 6))
classifier = nn.Linear(6, 3)
critic = nn.Sequential(nn.Linear(6, 8), nn.ReLU(inplace=True), nn.Linear(8, 1))

# %%
source = torch.randn(20, 5)
source_y = torch.randint(0, 3, (20,))
target = torch.randn(20, 5) * 1.3
target += 0.5
domain = torch.cat([torch.ones(20, 1), torch.zeros(20, 1)])

task_opt = torch.optim.SGD([*extractor.parameters(), *classifier.parameters()], lr=0.05)
domain_opt = torch.optim.SGD([*extractor.parameters(), *critic.parameters()], lr=0.05)

# %%
features = extractor(torch.cat([source, target]))
label_loss = nn.functional.cross_entropy(classifier(features[:20]), source_y)

# first the labelled half, then the domains
task_opt.zero_grad()
label_loss.backward()
task_opt.step()

features = extractor(torch.cat([source, target]))
confusion = critic(Reverse.apply(features, 0.3))
domain_loss = nn.functional.binary_cross_entropy_with_logits(confusion, domain)
domain_opt.zero_grad()
domain_loss.backward()
domain_opt.step()
print(label_loss.item(), domain_loss.item())
