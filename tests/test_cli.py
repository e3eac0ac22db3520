import pytest

from sfo.cli import COMMANDS, main


def test_modes_are_drawn(tmp_path, capsys):
    main(["modes", "--n", "64", "--n-modes", "3", "--out", str(tmp_path / "new" / "modes.png")])
    assert (tmp_path / "new" / "modes.png").read_bytes().startswith(b"\x89PNG")
    assert "modes.png" in capsys.readouterr().out


def test_list_names_what_can_be_chosen(capsys):
    main(["list"])
    assert "usb, usb_dense" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["modes", "--basis", "ubs"], "sfo: Unknown basis 'ubs'"),
        (["modes", "--n", "8", "--n-modes", "9"], "sfo: `n_modes` must be in 1..n"),
        (["modes", "--out", "/proc/none/x.png"], "sfo: "),
    ],
)
def test_bad_values_are_one_line_and_exit_code_2(arguments, message, capsys):
    with pytest.raises(SystemExit) as stop:
        main(arguments)
    assert stop.value.code == 2
    err = capsys.readouterr().err
    assert err.startswith(message)
    assert err.count("\n") == 1


@pytest.mark.parametrize(
    "arguments", [["nonsense"], ["modes", "--n", "abc"], ["modes", "--nn", "3"]]
)
def test_bad_options_exit_with_2(arguments):
    with pytest.raises(SystemExit) as stop:
        main(arguments)
    assert stop.value.code == 2


def test_debug_shows_the_traceback():
    with pytest.raises(ValueError, match="Unknown basis"):
        main(["modes", "--basis", "ubs", "--debug"])


@pytest.mark.parametrize("command", COMMANDS)
def test_help_says_what_an_option_is_when_it_is_left_out(command, capsys):
    with pytest.raises(SystemExit):
        main([command, "--help"])
    text = " ".join(capsys.readouterr().out.replace("│", " ").split())
    for unresolved in ("default: None", "default: )", "{None", "if left out", "ANNOTATED"):
        assert unresolved not in text
