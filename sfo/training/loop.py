"""The loop: the state of a run at any step, and how it takes the next one."""

import math
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

import torch
from lightning_fabric import Fabric
from torch import Tensor, nn
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn

from sfo.data.pairs import Pairs
from sfo.models.blocks import with_current_names
from sfo.registry import BENCHMARKS
from sfo.training import checkpoint
from sfo.training.batches import BatchShard, batch_shards, fetch, micro_batches
from sfo.training.config import Experiment
from sfo.training.folder import RunFolder
from sfo.training.loggers import Loggers
from sfo.training.loss import LOSSES, relative_l2
from sfo.training.optimizers import optimizer
from sfo.training.origin import check_origin, origin
from sfo.training.physics import PhysicsLoss, initial_loss
from sfo.training.processes import (
    gather,
    is_finite,
    on_rank_zero,
    random_states,
    set_random_states,
    share_buffers,
)
from sfo.training.schedule import learning_rate
from sfo.training.sharding import gather_state, move_and_shard, shard_state
from sfo.training.signals import Stopped, StopRequest

EXPLODED = 1e4
"""A relative error above this is no longer a fit to anything."""


class Diverged(ValueError):
    """A run whose loss is no longer a number, or has left all bounds."""


@dataclass(frozen=True)
class Status:
    """The state of a run, for a progress display, after every step.

    Args:
        epoch, epochs, step, steps: How far it is, and how far it will go.
        loss: Error of the batch; at the end of an epoch, that of the epoch.
        validation: The last error on the validation samples.
        samples_per_second, seconds_left: How fast it is.
        ends_epoch: Whether this step was the last one of its epoch.
    """

    epoch: int
    epochs: int
    step: int
    steps: int
    loss: float
    validation: float | None
    samples_per_second: float
    seconds_left: float
    ends_epoch: bool = False


class Loop:
    """The state of a run, and its steps.

    Args:
        fabric: Launched.
        experiment: What to do.
        folder: Opened.
        model: With its first weights.
        train, validation: Pairs.
        stop: Is looked at once per step.
        progress: Called after every step.
        loggers: Names of loggers besides TensorBoard.
    """

    def __init__(
        self,
        fabric: Fabric,
        experiment: Experiment,
        folder: RunFolder,
        model: nn.Module,
        train: Pairs,
        validation: Pairs,
        stop: StopRequest,
        progress: Callable[[Status], None] | None = None,
        loggers: Sequence[str] = (),
    ) -> None:
        self.fabric, self.experiment, self.folder = fabric, experiment, folder
        self.train, self.validation = train, validation
        self.stop, self.progress = stop, progress
        self.config = experiment.train
        self.steps_per_epoch = -(-len(train) // self.config.batch_size)
        self.steps = self.config.epochs * self.steps_per_epoch
        self.loggers = Loggers(loggers, folder.path, experiment.model_dump(mode="json"))
        self.module = model
        self.ema: AveragedModel | None = None
        if self.config.ema is not None:
            # First, because a sharded model cannot be copied.
            self.ema = AveragedModel(model, multi_avg_fn=get_ema_multi_avg_fn(self.config.ema))
            move_and_shard(fabric, self.ema.module)
        self.model = fabric.setup_module(model)
        self.optimizer: Any = fabric.setup_optimizers(optimizer(model, self.config))
        self.regularised: list[Any] = [m for m in model.modules() if hasattr(m, "regularisation")]
        self.physics: PhysicsLoss | None = None
        if self.config.physics:
            data = experiment.data
            benchmark = BENCHMARKS[data.benchmark].with_options(**data.options)
            self.physics = PhysicsLoss(benchmark, train)
        # Held, because `train` may be read from a file.
        self.first = train[:16] if self.config.initial else train
        torch.manual_seed(experiment.seed)
        self.step = 0
        self.loss_sum = 0.0
        self.best = math.inf
        self.history: list[dict[str, Any]] = []

    def run(self) -> None:
        """All steps from here on."""
        status = "aborted"
        try:
            while self.step < self.steps:
                self._epoch()
            status = "success"
        finally:
            self.loggers.close(status)
        self._stop_if_signalled(gather(self.fabric, self.stop.received))

    def _epoch(self) -> None:
        """What is left of this epoch."""
        epoch, first = divmod(self.step, self.steps_per_epoch)
        begin, seen = time.perf_counter(), 0
        self.module.train()
        batches = batch_shards(
            len(self.train),
            self.config.batch_size,
            seed=self.experiment.seed,
            epoch=epoch,
            rank=self.fabric.global_rank,
            processes=self.fabric.world_size,
        )[first:]
        most, processes = self.config.micro_batch, self.fabric.world_size
        parts = [micro_batches(shard, most, processes) for shard in batches]
        fetched = fetch(self.train, [p for step in parts for p in step], self.config.loader_workers)
        for shard, step in zip(batches, parts, strict=True):
            loss, signals = self._train_step(step, fetched)
            seen += shard.size
            seconds = time.perf_counter() - begin
            better, is_last = False, self.step % self.steps_per_epoch == 0
            if is_last:
                better = self._finish_epoch(epoch, seconds, seen / seconds)
                loss = self.history[-1]["loss"]
            self._report(epoch, loss, seen / seconds, is_last)
            every = self.config.checkpoint_every or self.steps_per_epoch
            due = self.step % every == 0 or self.step == self.steps
            if better or due or signals.any():
                self.save(best=better)
            self._stop_if_signalled(signals)

    def _on_device(self, values: Tensor) -> Tensor:
        return values.to(self.fabric.device)

    def _train_step(
        self, parts: Sequence[BatchShard], fetched: Iterator[tuple[Tensor, Tensor]]
    ) -> tuple[float, Tensor]:
        """One step; the loss of the batch, and the signals that the processes have received."""
        rate = learning_rate(self.config, self.step, self.steps_per_epoch)
        for group in self.optimizer.param_groups:
            group["lr"] = rate
        self.optimizer.zero_grad()
        mine, size = 0.0, parts[0].size
        for part in parts:
            a, u = map(self._on_device, next(fetched))
            # Processes exchange the sum of their gradients, once.
            is_alone = part is parts[-1] or self.fabric.world_size == 1
            with nullcontext() if is_alone else self.fabric.no_backward_sync(self.model):
                prediction = self.model(a)
                errors = LOSSES[self.config.loss](prediction, u)
                loss = errors.mean() + self._extra_loss(a, prediction)
                self.fabric.backward(loss * part.weight)
            mine += float(errors.detach().sum()) if part.weight else 0.0
            # Before the next part is passed through.
            del a, u, prediction, errors, loss
        if self.config.clip is not None:
            self.fabric.clip_gradients(
                self.model, self.optimizer, max_norm=self.config.clip, error_if_nonfinite=False
            )
        # The one exchange a step besides the gradients'. It comes before the update, so that
        # weights are never changed by a loss that is not a number.
        sums, signals = gather(self.fabric, mine, self.stop.received).unbind(1)
        total = float(sums.sum())
        self._check(total / size, rate)
        self.optimizer.step()
        if self.ema is not None:
            self.ema.update_parameters(self.module)
        self.step += 1
        self.loss_sum += total
        return total / size, signals

    def _extra_loss(self, a: Tensor, prediction: Tensor) -> Tensor | float:
        """What is minimised beside the error: the equation's residual, and a model's own terms."""
        further: Tensor | float = 0.0
        if self.physics is not None:
            further = self.config.physics * self.physics(a, prediction).mean()
        if self.config.initial:
            further = further + self.config.initial * initial_loss(self.first, a, prediction).mean()
        for part in self.regularised:
            further = further + part.regularisation()
        return further

    def _stop_if_signalled(self, signals: Tensor) -> None:
        if signals.any():
            raise Stopped(int(signals.max()))

    def _check(self, error: float, rate: float) -> None:
        if error < EXPLODED:
            return
        good = checkpoint.latest(self.folder.checkpoints)
        kept = f"The last good checkpoint is {good}." if good else "No checkpoint was saved yet."
        raise Diverged(
            f"The run has diverged: the error is {error:g} at step {self.step} (epoch "
            f"{self.step // self.steps_per_epoch}) with the learning rate {rate:g}. {kept} Try a "
            "lower learning rate, or clip gradients."
        )

    def _finish_epoch(self, epoch: int, seconds: float, samples_per_second: float) -> bool:
        """Validate if it is time to, and write down how it went; whether this epoch is the best."""
        rate = self.optimizer.param_groups[0]["lr"]
        row: dict[str, Any] = dict(
            epoch=epoch,
            step=self.step,
            learning_rate=rate,
            loss=self.loss_sum / len(self.train),
            validation=None,
        )
        better = False
        if self.step == self.steps or (epoch + 1) % self.config.validate_every == 0:
            error = self._validate()
            self._check(error, rate)
            row["validation"], better = error, error < self.best
            self.best = min(self.best, error)
        self.loss_sum = 0.0
        self.history.append(row)
        timing = dict(epoch=epoch, seconds=seconds, samples_per_second=samples_per_second)

        def write() -> None:
            self.folder.write_metrics(self.history)
            self.folder.append("timing.jsonl", timing)
            self.loggers.write(self.history)

        on_rank_zero(self.fabric, write)
        return better

    @torch.no_grad()
    def _validate(self) -> float:
        """The paper's mean relative L2 error over the validation samples."""
        model = self.module if self.ema is None else self.ema.module
        precision = self.fabric.strategy.precision
        rank, processes, n = self.fabric.global_rank, self.fabric.world_size, len(self.validation)
        # Equally many batches for each, as sharded processes need each other in all of them:
        # whoever lacks a sample takes the last one, and does not count it.
        rows = torch.arange(rank, -(-n // processes) * processes, processes)
        total = 0.0
        share_buffers(self.fabric, model)
        model.eval()
        for batch in rows.split(self.config.micro_batch or self.config.batch_size):
            chosen = batch.clamp(max=n - 1)
            a, u = (
                self._on_device(self.validation.a[chosen]),
                self._on_device(self.validation.u[chosen]),
            )
            with precision.forward_context():
                prediction = model(precision.convert_input(a))
            errors = relative_l2(precision.convert_output(prediction), u)
            total += float(errors[batch < n].sum())
        model.train()
        return float(gather(self.fabric, total).sum()) / len(self.validation)

    def _report(self, epoch: int, loss: float, samples_per_second: float, is_last: bool) -> None:
        if self.progress is None or not self.fabric.is_global_zero:
            return
        validated = [row["validation"] for row in self.history if row["validation"] is not None]
        left = (self.steps - self.step) * len(self.train) / self.steps_per_epoch
        self.progress(
            Status(
                epoch=epoch,
                epochs=self.config.epochs,
                step=self.step,
                steps=self.steps,
                loss=loss,
                validation=validated[-1] if validated else None,
                samples_per_second=samples_per_second,
                seconds_left=left / samples_per_second,
                ends_epoch=is_last,
            )
        )

    def save(self, best: bool = False) -> None:
        """A checkpoint of everything the rest of the run depends on."""
        if not is_finite(self.fabric, self.module):
            self._check(math.nan, self.optimizer.param_groups[0]["lr"])
        state = dict(
            model=self.module.state_dict(),
            optimizer=self.optimizer.state_dict(),
            ema=None if self.ema is None else self.ema.state_dict(),
            precision=self.fabric.strategy.precision.state_dict(),
            random=random_states(self.fabric),
            step=self.step,
            loss_sum=self.loss_sum,
            best=self.best,
            history=self.history,
        )
        state = gather_state(self.fabric, state)

        def write() -> None:
            keep = self.config.keep_last
            state["origin"] = origin(self.experiment, self.folder.path)
            checkpoint.save(state, self.folder.checkpoints, self.step, keep_last=keep, best=best)

        on_rank_zero(self.fabric, write)

    def restore(self) -> None:
        """Go back to the newest whole checkpoint; to the beginning if there is none."""
        newest = checkpoint.load_latest(self.folder.checkpoints, require_finite=("model",))
        if newest is not None:
            path = self.folder.path
            on_rank_zero(self.fabric, lambda: check_origin(newest, self.experiment, path))
            self._load(newest)
        # What was written after that checkpoint is about to be written again.
        on_rank_zero(self.fabric, lambda: self.folder.write_metrics(self.history))

    def _load(self, state: dict[str, Any]) -> None:
        for entry in ("model", "ema"):
            if state[entry] is not None:
                state[entry] = with_current_names(state[entry])
        weights = self.module.state_dict()
        needed = gather_state(self.fabric, weights)
        on_rank_zero(self.fabric, lambda: checkpoint.check_shapes(state["model"], needed))
        self.module.load_state_dict(shard_state(state["model"], weights))
        # The optimizer counts the weights in this order, and keeps its means in their shapes.
        places = dict(enumerate(self.module.parameters()))
        self.optimizer.load_state_dict(shard_state(state["optimizer"], dict(state=places)))
        if self.ema is not None:
            self.ema.load_state_dict(shard_state(state["ema"], self.ema.state_dict()))
        self.fabric.strategy.precision.load_state_dict(state["precision"])
        set_random_states(self.fabric, state["random"])
        self.step, self.loss_sum = state["step"], state["loss_sum"]
        self.best, self.history = state["best"], state["history"]
