"""How many bytes a network takes: weights, activations, gradients, optimiser state, lowering buffers; when, and what still fits."""
