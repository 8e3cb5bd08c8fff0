"""From a csv file to a verdict and a model: `python examples/reviews.py`, in a directory with the three files that it names."""

import pandas as pd

import sidequest as sq


def main() -> None:
    suite = sq.Suite(
        primary=sq.Task("reviews", pd.read_csv("reviews.csv"), text="body", label="stars"),
        candidates={
            "other": sq.Task("other", "other.jsonl", text="body", label="stars"),
            "sst2": sq.Task("sst2", "glue/sst2", path="SST-2"),  # without `path`, from the Hugging Face hub
        },
    )
    print(suite.check())
    result = sq.compare(suite, ["heu-size", sq.AutoSeM(trials=8)], model="pooled", seeds=5, workers=2)
    print(result)
    print(result.frame())
    result.page("report.html")
    model = result.best.train()
    print(model.predict(pd.DataFrame({"body": ["A superb film.", "An awful meal."]})))
    model.save("model/")
    print(sq.load("model/"))


if __name__ == "__main__":  # worker processes import this file
    main()
