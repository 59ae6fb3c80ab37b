"""Two designs for one layer: one from a file, one chosen for the board. Run from the repository: `python examples/simulate_layer.py`."""

from pathlib import Path

from boards import load_board
from dse.simulate import choose, simulate
from dse.workload.layer_file import load_design, load_layer

HERE = Path(__file__).parent


def main(engine: str = "auto") -> None:
    layer = load_layer(HERE / "layer.yaml")
    board = load_board("papilio-pro")
    given = choose(layer, board, design=load_design(HERE / "design.yaml"))
    chosen = choose(layer, board, weight_bits=8, activation_bits=8)
    for choice in (given, chosen):
        report, tensors = simulate(layer, board, choice, engine=engine)
        assert report.matches, "prediction, simulation and NumPy agree"
        kind, least = choice.prediction.bound
        print(f"{report.design.array}: {report.cycles} cycles, {kind} alone would need {least}; "
              f"output {tensors['output'].shape} from {tensors['output'].min()} to {tensors['output'].max()}")


if __name__ == "__main__":
    main()
