"""The files that one room leaves for another, each a typed record with a version, `read` and `write`.

| file | record | written by |
| --- | --- | --- |
| `run.json` | `runs.RunRecord` | `select`, before any work: whose directory it is |
| `selection.json` | `runs.SelectionRecord` | `select`: what choosing cost |
| `scores.json` | `runs.ScoresRecord` | `train`: the exported model's scores |
| `record.json` | `runs.FactsRecord` | every command: itself, the machine, facts about the data |
| `examples.json` | `runs.ExamplesRecord` | every command: a few rows of each recipe |
| `outcome.json` | `comparisons.Outcome` | `compare`: one method on one seed |
| `comparison.json` | `comparisons.Comparison` | `compare`: the table and the verdict |
| `conduct.json` | `comparisons.Conduct` | `compare`: seconds, memory and the command, beside the table |
| `table.json` | `comparisons.PrimariesTable` | `compare --primary a,b`: the large table |
| `standings.json` | `standings.StandingsRecord` | `score` |

`recipe.json` is `sidequest.recipe.Recipe`, a truth table `sidequest.runs.truth.TruthTable`; both have versions of their own. What
is in a recipe's evidence is in `evidence`. A file of sidequest 0.1 has no version and is still read.
"""
