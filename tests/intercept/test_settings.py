"""Settings: defaults, `%config`, and what is refused."""

import pytest
from traitlets import TraitError

import autograd_explain
from autograd_explain.settings import AutogradExplain, Options, default_language, language_of


@pytest.mark.parametrize(
    ("environment", "language"),
    [
        ({}, "en"),
        ({"LANG": "ja_JP.UTF-8"}, "ja"),
        ({"LANG": "zh_CN.UTF-8", "LC_ALL": "C.UTF-8"}, "en"),
        ({"LANG": "de_DE.UTF-8"}, "en"),
        ({"LC_MESSAGES": "zh_TW", "LANG": "ja_JP"}, "zh"),
        ({"AUTOGRAD_EXPLAIN_LANG": "ja", "LC_ALL": "zh_CN"}, "ja"),
        ({"AUTOGRAD_EXPLAIN_LANG": "klingon", "LANG": "ja_JP"}, "ja"),
        ({"AUTOGRAD_EXPLAIN_LANG": "", "LANG": "ja_JP"}, "ja"),
    ],
)
def test_language_by_environment(environment, language):
    assert default_language(environment) == language


def test_language_tags():
    assert [language_of(t) for t in ("ja", "JA_jp", "zh-Hant", "en_US.UTF-8", "fr", "jam", "")] == [
        "ja",
        "ja",
        "zh",
        "en",
        None,
        None,
        None,
    ]


def test_options_are_the_settings(monkeypatch, tmp_path):
    monkeypatch.setenv("AUTOGRAD_EXPLAIN_LANG", "zh")
    assert AutogradExplain().options() == Options(language="zh")
    own = AutogradExplain(language="ja", causes=[str(tmp_path)], budget=3, record_next_run=False)
    expected = Options(language="ja", causes=(str(tmp_path),), budget=3.0, record_next_run=False)
    assert own.options() == expected


def test_every_option_can_be_set():
    assert set(Options.__dataclass_fields__) == set(AutogradExplain.class_own_traits(config=True))


@pytest.mark.parametrize(
    ("name", "value", "why"),
    [
        ("language", "fr", "language must be 'en', 'ja', 'zh' or 'auto', not 'fr'"),
        ("language", 3, "language"),
        ("detail", "long", "short"),
        ("budget", 0, "budget must be a positive number of seconds"),
        ("budget", float("nan"), "budget must be a positive number of seconds"),
        ("budget", "soon", "budget"),
        ("causes", ["/no/such/folder"], "causes: no such folder: /no/such/folder"),
        ("enabled", "maybe", "enabled"),
    ],
)
def test_a_bad_value_is_refused_and_changes_nothing(name, value, why):
    settings = AutogradExplain()
    before = settings.options()
    with pytest.raises(TraitError, match=why):
        setattr(settings, name, value)
    assert settings.options() == before


def test_config_lists_and_sets(run, session, capsys):
    run("%config")
    assert "AutogradExplain" in capsys.readouterr().out
    run("%config AutogradExplain")
    out = capsys.readouterr().out
    for name in Options.__dataclass_fields__:
        assert f"AutogradExplain.{name}=" in out
    run("%config AutogradExplain.language = 'zh_CN'")
    run("%config AutogradExplain.detail = 'full'")
    assert (session.settings.language, session.settings.detail) == ("zh", "full")
    run("%config AutogradExplain.language = 'fr'")
    assert session.settings.language == "zh"


def test_a_bad_value_in_config_says_why(run, caplog):
    run("%config AutogradExplain.language = 'fr'")
    assert "language must be 'en', 'ja', 'zh' or 'auto', not 'fr'" in caplog.text


def test_a_profile_can_set_them(plain_shell):
    plain_shell.config.AutogradExplain.language = "ja"
    plain_shell.extension_manager.load_extension("autograd_explain")
    import autograd_explain

    assert autograd_explain._session.settings.language == "ja"


def test_a_refused_setting_breaks_nothing_later(run, session, capsys):
    run("%config AutogradExplain.detail = 'full'")
    run("%config AutogradExplain.language = 'fr'")
    run("%reload_ext autograd_explain")
    capsys.readouterr()
    run("%autograd_check status")
    told = capsys.readouterr()
    assert told.out == "autograd_check: off\n"
    again = autograd_explain._session.settings
    assert again.language == "en" and again.detail == "full"


def test_another_language_is_that_of_the_latest_report_too(run, session):
    run("import torch; w = torch.ones(2, requires_grad=True); w += 1")
    told = session.last
    run("%config AutogradExplain.language = 'ja'")
    assert session.last == told.in_language("ja") != told
    assert autograd_explain.last() == session.last
