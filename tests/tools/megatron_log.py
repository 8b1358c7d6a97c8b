"""Makes a log such as Megatron-LM prints, of steps that take so long."""

TIMERS = """(min, max) time across ranks (ms):
    forward-compute ................................: ({f:.2f}, {f:.2f})
    optimizer ......................................: (10.00, 11.00)
"""


def megatron_log(steps, milliseconds, batch=128, forward=None):
    lines = ["using world size: 16"]
    for step in range(1, steps + 1):
        spread = 1 + 0.01 * (step % 3)
        if forward:
            lines.append(TIMERS.format(f=forward))
        lines.append(f" iteration {step:8d}/ {steps:8d} | consumed samples: {step * batch:12d} | elapsed time per iteration (ms): "
                     f"{milliseconds * spread:.1f} | global batch size: {batch:5d} | lm loss: 2.0 |")
    lines.append("[Rank 0] (after 3 iterations) memory (MB) | allocated: 9000.5 | max allocated: 50000.0 | reserved: 60000.0 | "
                 "max reserved: 61440.0")
    return "\n".join(lines) + "\n"
