from autotune.execution.run_folder import fresh_folder


def test_who_still_writes_into_a_runs_folder_does_not_disturb_the_next(tmp_path):
    folder = fresh_folder(tmp_path / "runs" / "00003")
    with (folder / "stdout").open("w") as left_over:
        again = fresh_folder(folder)
        left_over.write("from a host that was cut off")
        left_over.flush()
        assert again == folder
        assert list(again.iterdir()) == []
    assert [entry.name for entry in again.parent.iterdir()] == ["00003"]
