"""Prints losses, gradients and weights of small models trained in PyTorch, for torch_oracle_test.cpp.

    python3 tests/tools/torch/oracle.py > tests/tools/torch/oracle.json

The models are written in PyTorch from their papers. They take from Plumb the initial weights and the data, which a
counter generator defines (kernels/counter_random.h), and the layout of each parameter (kernels/layer.h).
Everything is computed in double precision. For each parameter tensor the file has the largest magnitude, the Euclidean
norm and the elements (2 j + 1) count / 12, j = 0..5. Gradients are those of the first and the last step. Adafactor and
Lion, which PyTorch 1.13 does not have, follow their papers.
"""
import json
import math
import sys

import numpy
import torch
import torch.nn.functional as nn

torch.set_default_dtype(torch.float64)
torch.set_num_threads(1)

SEED, MICROBATCHES, MICROBATCH, SEQUENCE, STEPS, VOCAB = 1, 4, 2, 7, 4, 32
WEIGHTS, DATA, DROPOUT, PATTERN, NOISE = 1, 2, 3, 4, 5  # streams of random numbers


# Random numbers by key ------------------------------------------------------------------------------------------------

def words(values):
    return numpy.asarray(values).astype(numpy.uint64)


def mix(x):
    x = x + words(0x9E3779B97F4A7C15)
    x = (x ^ (x >> words(30))) * words(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> words(27))) * words(0x94D049BB133111EB)
    return x ^ (x >> words(31))


def counter_random(*key):
    state = words(0)
    with numpy.errstate(over="ignore"):
        for word in key:
            state = mix(state ^ mix(words(word)))
    return state


def uniform_index(count, *key):
    return int(counter_random(*key) % words(count))


def standard_normal(*key):
    bits = counter_random(*key)
    radius = ((bits >> words(32)).astype(float) + 1) / 2**32
    angle = (bits & words(0xFFFFFFFF)).astype(float) / 2**32
    return (numpy.sqrt(-2 * numpy.log(radius)) * numpy.cos(2 * math.pi * angle)).astype(numpy.float32)


def uniform_share(*key):
    return (counter_random(*key) >> words(32)).astype(float) / 2**32


def dropped(step, layer, first_sample, shape, probability):
    samples = numpy.arange(first_sample, first_sample + shape[0])[:, None]
    bits = counter_random(DROPOUT, SEED, step, layer, 0, samples, 0, numpy.arange(shape[1])[None, :])
    return (bits >> words(40)).astype(numpy.float32) / numpy.float32(2**24) < numpy.float32(probability)


# Layers: parameters as [(shape, deviation, constant or function of uniform numbers)], and a forward -------------------

class Place:
    """The step and the micro-batch that are computed."""

    def __init__(self, step, microbatch):
        self.step, self.first_sample = step, microbatch * MICROBATCH


def normal(shape, deviation, layer=None):
    return {"shape": shape, "deviation": deviation, "layer": layer}


def constant(width, value):
    return {"shape": [width], "value": value}


def drawn(width, value_of):
    return {"shape": [width], "value_of": value_of}


def matrix(rows, columns, experts=None):
    return normal(([experts] if experts else []) + [rows, columns], columns ** -0.5)


def norm_parameters(kind, width):
    return [constant(width, 1.0)] + ([constant(width, 0.0)] if kind == "layer" else [])


def norm(kind, x, parameters, epsilon=1e-5):
    if kind == "layer":
        return nn.layer_norm(x, x.shape[-1:], parameters[0], parameters[1], epsilon)
    return x * torch.rsqrt((x * x).mean(-1, keepdim=True) + epsilon) * parameters[0]


class Embedding:
    def __init__(self, hidden, positions):
        self.positions = positions
        self.parameters = [normal([VOCAB, hidden], 0.02)]
        if positions:
            self.parameters.append(normal([positions, hidden], 0.02))

    def forward(self, x, p, place, data):
        y = nn.embedding(data.tokens(place)[:, :-1], p[0])
        return y + p[1][:SEQUENCE] if self.positions else y


class Head:
    def __init__(self, hidden, kind, tied, softcap=None):
        self.kind, self.tied, self.softcap = kind, tied, softcap
        self.parameters = norm_parameters(kind, hidden) + [normal([VOCAB, hidden], 0.02)]

    def forward(self, x, p, place, data):
        logits = norm(self.kind, x, p) @ p[-1].T
        if self.softcap is not None:
            logits = self.softcap * torch.tanh(logits / self.softcap)
        return nn.cross_entropy(logits.reshape(-1, VOCAB), data.tokens(place)[:, 1:].reshape(-1), reduction="sum")


def rotated(x):
    """RoPE (Su et al. 2021) on [batch, heads, sequence, channels], channel i beside i + channels / 2."""
    size = x.shape[-1]
    angle = torch.arange(SEQUENCE)[:, None] * 10000.0 ** (-2 * torch.arange(size // 2) / size)
    cos, sin, first, second = angle.cos(), angle.sin(), x[..., :size // 2], x[..., size // 2:]
    return torch.cat([first * cos - second * sin, second * cos + first * sin], -1)


def attended(q, k, v, window=None, softcap=None, sinks=None):
    """Causal attention of [batch, heads, sequence, channels], with grouped keys and values. Returns the heads side by
    side. Where they are given, a cap bounds scores by tanh (Gemma Team 2024), and a sink is a head's score that has no
    value (gpt-oss)."""
    k, v = (y.repeat_interleave(q.shape[1] // k.shape[1], 1) for y in (k, v))
    scores = q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1])
    if softcap is not None:
        scores = softcap * torch.tanh(scores / softcap)
    seen = torch.ones(SEQUENCE, SEQUENCE, dtype=torch.bool).tril()
    if window is not None:
        seen = seen.triu(1 - window)
    scores = scores.masked_fill(~seen, -math.inf)
    if sinks is not None:
        own = sinks[None, :, None, None].expand(q.shape[0], -1, SEQUENCE, 1)
        scores = torch.cat([scores, own], -1)
    return (scores.softmax(-1)[..., :SEQUENCE] @ v).transpose(1, 2).reshape(q.shape[0], SEQUENCE, -1)


def swiglu(x, up, down, up_bias=0, down_bias=0):
    gate, value = (x @ up.T + up_bias).chunk(2, -1)
    return (nn.silu(gate) * value) @ down.T + down_bias


def mixture(probabilities, chosen, expert):
    """Sums what the chosen experts make of each token, by their probabilities over the picks' sum."""
    weights = probabilities.gather(-1, chosen)
    weights = torch.zeros_like(probabilities).scatter(-1, chosen, weights / weights.sum(-1, keepdim=True))
    return sum(weights[..., e:e + 1] * expert(e) for e in range(probabilities.shape[-1]))


class Block:
    """A decoder block of GPT-2 (Radford et al. 2019) or Llama (Touvron et al. 2023), also with norms of queries and keys:
    of each head (Qwen Team 2025), or of all heads at once (OLMo 2, Team OLMo 2024)."""

    def __init__(self, style, hidden, heads, kv_heads, ffn, window=None, softcap=None, norms=None):
        self.llama, self.window, self.softcap, self.norms = style == "llama", window, softcap, norms
        self.heads, self.kv_heads, self.size = heads, kv_heads, hidden // heads
        self.kind = "rms" if self.llama else "layer"
        width = (heads + 2 * kv_heads) * self.size
        up = 2 * ffn if self.llama else ffn
        bias = lambda rows: [] if self.llama else [constant(rows, 0.0)]
        gains = {None: [], "head": [self.size] * 2, "all": [heads * self.size, kv_heads * self.size]}[norms]
        self.parameters = (norm_parameters(self.kind, hidden) + [matrix(width, hidden)] + bias(width) +
                           [parameter for gain in gains for parameter in norm_parameters(self.kind, gain)] +
                           [matrix(hidden, hidden)] + bias(hidden) + norm_parameters(self.kind, hidden) +
                           [matrix(up, hidden)] + bias(up) + [matrix(hidden, ffn)] + bias(hidden))
        # The keys' biases have no gradient but rounding, which optimizers by sign or ratio would make as large as any.
        self.weights_not_compared = [] if self.llama else [3]

    def forward(self, x, p, place, data):
        p = list(p)
        take = lambda: p.pop(0)
        linear = lambda y: nn.linear(y, take()) if self.llama else nn.linear(y, take(), take())
        normalised = lambda y: norm(self.kind, y, [take()] if self.llama else [take(), take()])
        batch = x.shape[0]
        qkv = linear(normalised(x)).reshape(batch, SEQUENCE, -1, self.size).transpose(1, 2)
        q, k, v = qkv.split([self.heads, self.kv_heads, self.kv_heads], 1)
        if self.norms == "head":
            q, k = normalised(q), normalised(k)
        if self.norms == "all":
            side_by_side = lambda y: y.transpose(1, 2).reshape(batch, SEQUENCE, -1)
            q, k = (normalised(side_by_side(y)).reshape(batch, SEQUENCE, -1, self.size).transpose(1, 2) for y in (q, k))
        if self.llama:
            q, k = rotated(q), rotated(k)
        x = x + linear(attended(q, k, v, self.window, self.softcap))
        up = linear(normalised(x))
        if self.llama:
            gate, value = up.chunk(2, -1)
            return x + linear(nn.silu(gate) * value)
        return x + linear(nn.gelu(up, approximate="tanh"))


class DeepSeekBlock:
    """A block of DeepSeek-V3 (DeepSeek-AI 2024): latent attention, a router with a sigmoid for each expert, and a
    shared expert. Keys of all heads share their turned channels. Picks follow the probabilities plus a bias (section
    2.1.2), which sinks by the rate after a step in which its expert had more than its share of the picks, and rises
    after one in which it had less."""
    HIDDEN, HEADS, SIZE, TURNED, QUERY_RANK, KV_RANK, VALUE = 16, 4, 6, 2, 10, 8, 5
    EXPERTS, PICKS, FFN, SHARED = 4, 2, 12, 8

    def __init__(self, rate):
        self.rate, self.loads = rate, torch.zeros(self.EXPERTS)
        h, a, own = self.HIDDEN, self.HEADS, self.SIZE - self.TURNED
        self.parameters = [constant(h, 1.0), matrix(self.QUERY_RANK, h), constant(self.QUERY_RANK, 1.0),
                           matrix(a * self.SIZE, self.QUERY_RANK), matrix(self.KV_RANK + self.TURNED, h),
                           constant(self.KV_RANK, 1.0), matrix(a * (own + self.VALUE), self.KV_RANK),
                           matrix(h, a * self.VALUE), constant(h, 1.0), matrix(self.EXPERTS, h),
                           constant(self.EXPERTS, 0.0), matrix(2 * self.FFN, h, self.EXPERTS),
                           matrix(h, self.FFN, self.EXPERTS), matrix(2 * self.SHARED, h), matrix(h, self.SHARED)]

    def forward(self, x, p, place, data):
        own, heads = self.SIZE - self.TURNED, lambda y: y.reshape(y.shape[0], SEQUENCE, self.HEADS, -1).transpose(1, 2)
        rms = lambda y, gain: norm("rms", y, [gain])
        y = rms(x, p[0])
        q, turned = heads(rms(y @ p[1].T, p[2]) @ p[3].T).split([own, self.TURNED], -1)
        compressed, shared = (y @ p[4].T).split([self.KV_RANK, self.TURNED], -1)
        k, v = heads(rms(compressed, p[5]) @ p[6].T).split([own, self.VALUE], -1)
        shared = rotated(shared[:, None]).expand(-1, self.HEADS, -1, -1)
        x = x + attended(torch.cat([q, rotated(turned)], -1), torch.cat([k, shared], -1), v) @ p[7].T
        y = rms(x, p[8])
        probabilities = torch.sigmoid(y @ p[9].T)
        chosen = (probabilities + p[10]).topk(self.PICKS, -1).indices
        self.loads += torch.bincount(chosen.reshape(-1), minlength=self.EXPERTS)
        return x + mixture(probabilities, chosen, lambda e: swiglu(y, p[11][e], p[12][e])) + swiglu(y, p[13], p[14])

    def excess(self, p):
        """Returns by how much each expert's picks of the step are more than its share, times the number of experts, in
        the place of the gradient that the bias has not."""
        return [self.EXPERTS * self.loads - self.loads.sum() if q is p[10] else q.grad for q in p]

    @torch.no_grad()
    def end_step(self, p):
        p[10] -= self.rate * (self.loads - self.loads.mean()).sign()
        self.loads.zero_()


class OssBlock:
    """A block of gpt-oss (OpenAI 2025): sinks, windows, and biases on attention, router and experts; with SwiGLU."""
    HIDDEN, HEADS, KV_HEADS, SIZE, WINDOW, EXPERTS, PICKS, FFN = 16, 4, 2, 4, 3, 4, 2, 12

    def __init__(self):
        h, width = self.HIDDEN, (self.HEADS + 2 * self.KV_HEADS) * self.SIZE
        self.parameters = [constant(h, 1.0), matrix(width, h), constant(width, 0.0), constant(self.HEADS, 0.0),
                           matrix(h, h), constant(h, 0.0), constant(h, 1.0), matrix(self.EXPERTS, h),
                           constant(self.EXPERTS, 0.0), matrix(2 * self.FFN, h, self.EXPERTS),
                           constant(self.EXPERTS * 2 * self.FFN, 0.0), matrix(h, self.FFN, self.EXPERTS),
                           constant(self.EXPERTS * h, 0.0)]

    def forward(self, x, p, place, data):
        qkv = (norm("rms", x, [p[0]]) @ p[1].T + p[2]).reshape(x.shape[0], SEQUENCE, -1, self.SIZE).transpose(1, 2)
        q, k, v = qkv.split([self.HEADS, self.KV_HEADS, self.KV_HEADS], 1)
        x = x + attended(rotated(q), rotated(k), v, window=self.WINDOW, sinks=p[3]) @ p[4].T + p[5]
        y = norm("rms", x, [p[6]])
        ups, downs = p[10].reshape(self.EXPERTS, -1), p[12].reshape(self.EXPERTS, -1)
        expert = lambda e: swiglu(y, p[9][e], p[11][e], ups[e], downs[e])
        probabilities = (y @ p[7].T + p[8]).softmax(-1)
        return x + mixture(probabilities, probabilities.topk(self.PICKS, -1).indices, expert)


class Mamba2Block:
    """A block of Mamba-2 (Dao & Gu 2024). The state space is computed in its quadratic form (equation 16), as one product
    like attention, whose scores the decays between two tokens weigh."""
    HIDDEN, HEADS, SIZE, STATE, GROUPS, TAPS = 16, 4, 6, 5, 2, 3

    def __init__(self):
        inner, shared = self.HEADS * self.SIZE, 2 * self.GROUPS * self.STATE
        decay_log = lambda share: numpy.log(1 + 15 * share)
        step_bias = lambda share: numpy.log(numpy.expm1(0.001 * 100 ** share))
        self.parameters = [constant(self.HIDDEN, 1.0), matrix(2 * inner + shared + self.HEADS, self.HIDDEN),
                           matrix(inner + shared, self.TAPS), constant(inner + shared, 0.0),
                           drawn(self.HEADS, decay_log), drawn(self.HEADS, step_bias), constant(self.HEADS, 1.0),
                           constant(inner, 1.0), matrix(self.HIDDEN, inner)]

    def states(self, x, b, c, step, decay_log, skip):
        """Returns y [batch, sequence, heads, size] for x of that shape, b and c [batch, sequence, groups, state], and
        step [batch, sequence, heads]."""
        b, c = (y.repeat_interleave(self.HEADS // self.GROUPS, 2) for y in (b, c))
        logs = (-decay_log.exp() * step).cumsum(1)
        between = (logs[:, :, None] - logs[:, None]).permute(0, 3, 1, 2)  # [batch, heads, to, from]
        seen = torch.ones(SEQUENCE, SEQUENCE, dtype=torch.bool).tril()
        scores = torch.einsum("bihn,bjhn->bhij", c, b) * between.masked_fill(~seen, -math.inf).exp()
        return torch.einsum("bhij,bjhp->bihp", scores, step[..., None] * x) + skip[:, None] * x

    def forward(self, x, p, place, data):
        gain, into, taps, taps_bias, decay_log, step_bias, skip, mixer_gain, out = p
        inner, shared = self.HEADS * self.SIZE, self.GROUPS * self.STATE
        z, xbc, step = (norm("rms", x, [gain]) @ into.T).split([inner, inner + 2 * shared, self.HEADS], -1)
        padded = nn.pad(xbc.transpose(1, 2), [self.TAPS - 1, 0])
        xbc = nn.silu(nn.conv1d(padded, taps[:, None], taps_bias, groups=inner + 2 * shared)).transpose(1, 2)
        heads, b, c = (y.reshape(*y.shape[:2], count, -1) for y, count in
                       zip(xbc.split([inner, shared, shared], -1), [self.HEADS, self.GROUPS, self.GROUPS]))
        y = self.states(heads, b, c, nn.softplus(step + step_bias), decay_log, skip).reshape(*x.shape[:2], inner)
        gated = (y * nn.silu(z)).reshape(*x.shape[:2], self.GROUPS, -1)
        normed = norm("rms", gated, [mixer_gain.reshape(self.GROUPS, -1)]).reshape(*x.shape[:2], inner)
        return x + normed @ out.T


class Input:
    parameters = []

    def forward(self, x, p, place, data):
        return data.inputs(place)


class Convolution:
    """A convolution of images [height, width, channels] with filters [filter, row, column, channel of its group]."""

    def __init__(self, channels, filters, kernel, padding, groups=1):
        self.kernel, self.padding, self.groups = kernel, padding, groups
        fan_in = kernel * kernel * channels // groups
        self.parameters = [normal([filters, fan_in], (2 / fan_in) ** 0.5), constant(filters, 0.0)]

    def forward(self, x, p, place, data):
        filters = p[0].reshape(p[0].shape[0], self.kernel, self.kernel, -1).permute(0, 3, 1, 2)
        y = nn.conv2d(x.permute(0, 3, 1, 2), filters, p[1], padding=self.padding, groups=self.groups)
        return nn.relu(y).permute(0, 2, 3, 1)


class MaxPooling:
    parameters = []

    def forward(self, x, p, place, data):
        return nn.max_pool2d(x.permute(0, 3, 1, 2), 3, 2).permute(0, 2, 3, 1)


class Linear:
    def __init__(self, width_in, width_out, activation=None, dropout=0.0):
        self.activation, self.dropout = activation, dropout
        variance = (2 if activation == "relu" else 1) / width_in
        self.parameters = [normal([width_out, width_in], variance ** 0.5), constant(width_out, 0.0)]

    def forward(self, x, p, place, data):
        y = nn.linear(x.reshape(x.shape[0], -1), p[0], p[1])
        if self.activation == "relu":
            y = nn.relu(y)
        if self.activation == "gelu":
            y = nn.gelu(y, approximate="tanh")
        if self.dropout > 0:
            mask = dropped(place.step, self.number, place.first_sample, y.shape, self.dropout)
            y = y.masked_fill(torch.from_numpy(mask), 0) / (1 - self.dropout)
        return y


class Mlp:
    def __init__(self, hidden, ffn):
        self.parameters = [normal([ffn, hidden], hidden ** -0.5), constant(ffn, 0.0),
                           normal([hidden, ffn], ffn ** -0.5), constant(hidden, 0.0)]

    def forward(self, x, p, place, data):
        return x + nn.linear(nn.gelu(nn.linear(x, p[0], p[1]), approximate="tanh"), p[2], p[3])


class SquaredError:
    parameters = []

    def forward(self, x, p, place, data):
        return ((x - data.targets(place)) ** 2).mean(-1).sum()


class CrossEntropy:
    parameters = []

    def forward(self, x, p, place, data):
        return nn.cross_entropy(x, data.labels(place), reduction="sum")


# Data -----------------------------------------------------------------------------------------------------------------

class Text:
    rows = MICROBATCH * MICROBATCHES * SEQUENCE  # rows of a step

    def tokens(self, place):
        text = [(7 * i + i // 10) % VOCAB for i in range(400)]
        firsts = [uniform_index(len(text) - SEQUENCE, DATA, SEED, place.step, place.first_sample + i)
                  for i in range(MICROBATCH)]
        return torch.tensor([text[first:first + SEQUENCE + 1] for first in firsts])


class Samples:
    rows = MICROBATCH * MICROBATCHES

    def __init__(self, shape, outputs):
        self.shape, self.outputs, self.elements = shape, outputs, math.prod(shape)

    def drawn(self, place):
        return [uniform_index(40, DATA, SEED, place.step, place.first_sample + i) for i in range(MICROBATCH)]

    def made_up(self, sample, element):
        return (numpy.float32(0.5) * standard_normal(PATTERN, SEED, sample % self.outputs, element) +
                standard_normal(NOISE, SEED, sample, element))

    def inputs(self, place):
        rows = [self.made_up(sample, numpy.arange(self.elements)).reshape(self.shape) for sample in self.drawn(place)]
        return torch.from_numpy(numpy.stack(rows).astype(float))

    def labels(self, place):
        return torch.tensor([sample % self.outputs for sample in self.drawn(place)])

    def targets(self, place):
        terms = [[uniform_index(self.elements, PATTERN, SEED, output, term) for term in range(3)]
                 for output in range(self.outputs)]
        return torch.tensor([[0.5 * sum(float(self.made_up(sample, term)) for term in three) for three in terms]
                             for sample in self.drawn(place)])


# Optimizers that PyTorch 1.13 has not ---------------------------------------------------------------------------------

class Lion(torch.optim.Optimizer):
    """Lion: Chen et al. 2023, algorithm 2."""

    def __init__(self, groups, lr, betas):
        super().__init__(groups, {"lr": lr, "betas": betas, "weight_decay": 0})

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            beta1, beta2 = group["betas"]
            for p in group["params"]:
                m = self.state[p].setdefault("m", torch.zeros_like(p))
                update = (beta1 * m + (1 - beta1) * p.grad).sign() + group["weight_decay"] * p
                p -= group["lr"] * update
                m.mul_(beta2).add_(p.grad, alpha=1 - beta2)


class Adafactor(torch.optim.Optimizer):
    """Adafactor: Shazeer & Stern 2018, algorithms 4 to 6, with step sizes relative to the parameter's, no momentum."""

    def __init__(self, groups, lr):
        super().__init__(groups, {"lr": lr, "weight_decay": 0})

    @torch.no_grad()
    def step(self):
        rms = lambda x: float((x * x).mean().sqrt())
        for group in self.param_groups:
            for p in group["params"]:
                state = self.state[p]
                t = state["t"] = state.get("t", 0) + 1
                beta = 1 - t ** -0.8
                square = p.grad * p.grad + 1e-30
                if p.dim() == 1:
                    state["v"] = beta * state.get("v", 0) + (1 - beta) * square
                    second = state["v"]
                else:
                    state["r"] = beta * state.get("r", 0) + (1 - beta) * square.sum(1)
                    state["c"] = beta * state.get("c", 0) + (1 - beta) * square.sum(0)
                    second = torch.outer(state["r"], state["c"]) / state["r"].sum()
                update = p.grad / second.sqrt()
                update /= max(1.0, rms(update))
                p -= group["lr"] * max(1e-3, rms(p)) * update + group["lr"] * group["weight_decay"] * p


# Training -------------------------------------------------------------------------------------------------------------

def initial(layer_number, number, parameter):
    if "value" in parameter:
        return torch.full(parameter["shape"], parameter["value"], requires_grad=True)
    elements = numpy.arange(math.prod(parameter["shape"]))
    if "value_of" in parameter:
        values = parameter["value_of"](uniform_share(WEIGHTS, SEED, layer_number, number, elements))
        return torch.tensor(values.astype(numpy.float32).astype(float), requires_grad=True)
    values = numpy.float32(parameter["deviation"]) * standard_normal(WEIGHTS, SEED, layer_number, number, elements)
    return torch.tensor(values.astype(float).reshape(parameter["shape"]), requires_grad=True)


def summary(values):
    flat = values.detach().reshape(-1)
    places = [(2 * j + 1) * flat.numel() // 12 for j in range(6)]
    rounded = lambda value: float("%.7g" % value)
    return {"largest": rounded(flat.abs().max()), "norm": rounded(flat.norm()),
            "values": [rounded(flat[place]) for place in places]}


def gradients_of(layer, parameters):
    return layer.excess(parameters) if hasattr(layer, "excess") else [p.grad for p in parameters]


def train(layers, data, make_optimizer, clip=0.0):
    weights = []
    for number, layer in enumerate(layers):
        layer.number = number
        weights.append([initial(number, i, parameter) for i, parameter in enumerate(layer.parameters)])
        if isinstance(layer, Head) and layer.tied:
            weights[-1][-1] = weights[0][0]
    unique = list({id(p): p for layer in weights for p in layer}.values())
    groups = [{"params": [p for p in unique if p.dim() > 1]},
              {"params": [p for p in unique if p.dim() == 1], "weight_decay": 0.0}]
    optimizer = make_optimizer(groups)
    result = {"losses": [], "gradients": []}
    for step in range(STEPS):
        optimizer.zero_grad()
        total = 0.0
        for microbatch in range(MICROBATCHES):
            x, place = None, Place(step, microbatch)
            for layer, parameters in zip(layers, weights):
                x = layer.forward(x, parameters, place, data)
            (x / data.rows).backward()
            total += float(x)
        result["losses"].append(float("%.9g" % (total / data.rows)))
        if clip > 0:
            torch.nn.utils.clip_grad_norm_(unique, clip)
        if step in (0, STEPS - 1):
            result["gradients"].append([[summary(gradient) for gradient in gradients_of(layer, parameters)]
                                        for layer, parameters in zip(layers, weights)])
        optimizer.step()
        for layer, parameters in zip(layers, weights):
            if hasattr(layer, "end_step"):
                layer.end_step(parameters)
    result["weights"] = [[None if i in getattr(layer, "weights_not_compared", []) else summary(p)
                          for i, p in enumerate(parameters)] for layer, parameters in zip(layers, weights)]
    return result


def gpt(tied):
    return ([Embedding(16, 16)] + [Block("gpt", 16, 2, 2, 32) for _ in range(2)] + [Head(16, "layer", tied)])


def llama(tied):
    return [Embedding(16, 0)] + [Block("llama", 16, 4, 2, 24) for _ in range(2)] + [Head(16, "rms", tied)]


def gemma():
    """Returns blocks with bounded scores and a head with bounded logits (Gemma Team 2024)."""
    return ([Embedding(16, 0)] + [Block("llama", 16, 4, 2, 24, window=5, softcap=1.5) for _ in range(2)] +
            [Head(16, "rms", False, softcap=0.2)])


def normed(norms):
    return [Embedding(16, 0)] + [Block("llama", 16, 4, 2, 24, norms=norms) for _ in range(2)] + [Head(16, "rms", False)]


def decoder(block):
    return [Embedding(16, 0)] + [block() for _ in range(2)] + [Head(16, "rms", False)]


def mlp():
    return ([Input(), Linear(32, 64, "gelu")] + [Mlp(64, 256) for _ in range(4)] + [Linear(64, 8), SquaredError()])


def alexnet():
    """Returns a small AlexNet (Krizhevsky et al. 2012): two groups, overlapping pooling, dropout."""
    return [Input(), Convolution(3, 32, 5, 2), MaxPooling(), Convolution(32, 48, 5, 2, 2), MaxPooling(),
            Convolution(48, 64, 3, 1), Convolution(64, 64, 3, 1, 2), Convolution(64, 48, 3, 1, 2), MaxPooling(),
            Linear(3 * 3 * 48, 128, "relu", 0.1), Linear(128, 128, "relu", 0.1), Linear(128, 10), CrossEntropy()]


def adamw(groups):
    return torch.optim.AdamW(groups, lr=1e-3, betas=(0.9, 0.95), eps=1e-8, weight_decay=0.1)


def decay_matrices(groups, weight_decay):
    return [dict(groups[0], weight_decay=weight_decay), groups[1]]


def sgd(groups):
    return torch.optim.SGD(decay_matrices(groups, 0.01), lr=1e-2, momentum=0.9)


def lion(groups):
    return Lion(decay_matrices(groups, 0.1), lr=1e-4, betas=(0.9, 0.99))


def adafactor(groups):
    return Adafactor(groups, lr=1e-2)


CASES = {
    "gpt tied, AdamW": lambda: train(gpt(True), Text(), adamw),
    "gpt untied, AdamW, clipped": lambda: train(gpt(False), Text(), adamw, clip=0.5),
    "gpt tied, Adafactor": lambda: train(gpt(True), Text(), adafactor),
    "llama untied, AdamW": lambda: train(llama(False), Text(), adamw),
    "llama tied, Lion": lambda: train(llama(True), Text(), lion),
    "llama tied, SGD, clipped": lambda: train(llama(True), Text(), sgd, clip=0.5),
    "gemma, AdamW": lambda: train(gemma(), Text(), adamw),
    "qwen3, AdamW": lambda: train(normed("head"), Text(), adamw),
    "olmo2, AdamW": lambda: train(normed("all"), Text(), adamw),
    "deepseek, AdamW": lambda: train(decoder(lambda: DeepSeekBlock(0.001)), Text(), adamw),
    "deepseek with fast biases, AdamW": lambda: train(decoder(lambda: DeepSeekBlock(0.125)), Text(), adamw),
    "gpt-oss, AdamW": lambda: train(decoder(OssBlock), Text(), adamw),
    "mamba2, AdamW": lambda: train(decoder(Mamba2Block), Text(), adamw),
    "mlp, SGD": lambda: train(mlp(), Samples([32], 8), sgd),
    "mlp, AdamW": lambda: train(mlp(), Samples([32], 8), adamw),
    "alexnet-32, AdamW": lambda: train(alexnet(), Samples([32, 32, 3], 10), adamw),
    "alexnet-32, Adafactor": lambda: train(alexnet(), Samples([32, 32, 3], 10), adafactor),
}

if __name__ == "__main__":
    document = {"made_by": "tests/tools/torch/oracle.py", "torch": torch.__version__,
                "cases": {name: case() for name, case in CASES.items()}}
    # Each parameter has a line, so that a change shows where it is.
    text = json.dumps(document)
    sys.stdout.write(text.replace('{"largest"', '\n{"largest"').replace('"weights"', '\n"weights"') + "\n")
