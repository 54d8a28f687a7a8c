"""Makes a training program a trial of Jizi, and asks its service for results.

    import jizi

    for trial in jizi.trials(defaults={"lr": 0.05}):     # by hand: once, with these
        model = Model(lr=trial.params["lr"])
        if trial.warm_start:
            model.load(trial.warm_start)
        for epoch in range(trial.start_step + 1, epochs + 1):
            loss = model.train_one_epoch()
            result = trial.report(epoch, loss=loss)
            trial.checkpoint(epoch, model.save)
            if result.should_stop:
                break

    jizi.connect("127.0.0.1:8470", token_file="team.db.token").study("sweep").best()

A training run never dies because the service is away: reports are kept (in memory, then in the
file JIZI_OUTBOX), sent again with backoff, and nothing counts twice. What kill -9 of the program
can lose is what was not yet in the outbox. An exception that ends the program fails the trial with
its text, jizi.Infeasible says that the parameters can never work. What goes wrong on the way to the
service is said on stderr, and the training goes on.
Threads: one trial at a time, used from one thread at a time; a background thread sends and renews
the lease. A process that forks (data loaders) uses the helper in the parent alone; in the child its
objects do nothing.
"""

from jizi._link import Options
from jizi._queries import Service, Study, connect
from jizi._trial import GradientStatistics, Infeasible, ReportResult, Trial
from jizi._trials import Trials, trials
from jizi._wire import Error

__version__ = "0.1.0"
__all__ = [
    "Error",
    "GradientStatistics",
    "Infeasible",
    "Options",
    "ReportResult",
    "Service",
    "Study",
    "Trial",
    "Trials",
    "connect",
    "trials",
]
