# %%
import torch

torch.manual_seed(0)
gain = torch.ones(8, requires_grad=True)
signal, wanted = torch.randn(4, 8), torch.rand(4, 5)
# %%
spectra = torch.zeros(4, 5, dtype=torch.cfloat)
for i in range(4):
    spectra[i] = torch.fft.rfft(gain * signal[i])
misfit = (spectra.abs() - wanted).square().mean()
misfit.backward()
print(gain.grad)
