import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--programs",
        type=int,
        default=200,
        help="how many random correct training programs the recorder watches",
    )
    parser.addoption(
        "--injected", type=int, default=0, help="how many injected programs to run (0: a subset)"
    )


@pytest.fixture(autouse=True, scope="session")
def _one_thread() -> None:
    import torch

    torch.set_num_threads(1)
