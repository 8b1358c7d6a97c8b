#pragma once
// Configurations of published models, as tests read them.

namespace plumb::test {

// These texts have the keys of published config.json files that bear on sizes, and some that do not.
inline constexpr const char* kLlama3 =
    R"({"architectures": ["LlamaForCausalLM"], "attention_bias": false, "attention_dropout": 0.0,
  "bos_token_id": 128000, "hidden_act": "silu", "hidden_size": 4096, "intermediate_size": 14336,
  "max_position_embeddings": 8192, "model_type": "llama", "num_attention_heads": 32, "num_hidden_layers": 32,
  "num_key_value_heads": 8, "rms_norm_eps": 1e-05, "rope_scaling": null, "rope_theta": 500000.0,
  "tie_word_embeddings": false, "torch_dtype": "bfloat16", "vocab_size": 128256})";
inline constexpr const char* kMistral = R"({"model_type": "mistral", "hidden_act": "silu", "hidden_size": 4096,
  "intermediate_size": 14336, "num_attention_heads": 32, "num_hidden_layers": 32, "num_key_value_heads": 8,
  "rms_norm_eps": 1e-05, "rope_theta": 10000.0, "sliding_window": 4096, "tie_word_embeddings": false,
  "vocab_size": 32000})";
inline constexpr const char* kQwen2 = R"({"model_type": "qwen2", "hidden_act": "silu", "hidden_size": 3584,
  "intermediate_size": 18944, "num_attention_heads": 28, "num_hidden_layers": 28, "num_key_value_heads": 4,
  "rms_norm_eps": 1e-06, "rope_theta": 1000000.0, "sliding_window": 131072, "use_sliding_window": false,
  "tie_word_embeddings": false, "vocab_size": 152064})";
inline constexpr const char* kMixtral = R"({"model_type": "mixtral", "hidden_act": "silu", "hidden_size": 4096,
  "intermediate_size": 14336, "max_position_embeddings": 32768, "num_attention_heads": 32, "num_experts_per_tok": 2,
  "num_hidden_layers": 32, "num_key_value_heads": 8, "num_local_experts": 8, "rms_norm_eps": 1e-05,
  "rope_theta": 1000000.0, "router_aux_loss_coef": 0.02, "sliding_window": null, "tie_word_embeddings": false,
  "vocab_size": 32000})";
inline constexpr const char* kQwen3 =
    R"({"model_type": "qwen3", "attention_bias": false, "head_dim": 128, "hidden_act": "silu",
  "hidden_size": 5120, "intermediate_size": 25600, "max_position_embeddings": 40960, "max_window_layers": 64,
  "num_attention_heads": 64, "num_hidden_layers": 64, "num_key_value_heads": 8, "rms_norm_eps": 1e-06,
  "rope_scaling": null, "rope_theta": 1000000, "sliding_window": null, "tie_word_embeddings": false,
  "use_sliding_window": false, "vocab_size": 151936})";
inline constexpr const char* kQwen3Moe =
    R"({"model_type": "qwen3_moe", "attention_bias": false, "decoder_sparse_step": 1,
  "head_dim": 128, "hidden_act": "silu", "hidden_size": 2048, "intermediate_size": 6144,
  "max_position_embeddings": 40960, "mlp_only_layers": [], "moe_intermediate_size": 768, "norm_topk_prob": true,
  "num_attention_heads": 32, "num_experts": 128, "num_experts_per_tok": 8, "num_hidden_layers": 48,
  "num_key_value_heads": 4, "rms_norm_eps": 1e-06, "rope_theta": 1000000.0, "sliding_window": null,
  "tie_word_embeddings": false, "use_sliding_window": false, "vocab_size": 151936})";
inline constexpr const char* kDeepSeekV3 =
    R"({"model_type": "deepseek_v3", "attention_bias": false, "first_k_dense_replace": 3,
  "hidden_act": "silu", "hidden_size": 7168, "intermediate_size": 18432, "kv_lora_rank": 512,
  "max_position_embeddings": 163840, "moe_intermediate_size": 2048, "moe_layer_freq": 1, "n_group": 8, "n_routed_experts": 256,
  "n_shared_experts": 1, "num_attention_heads": 128, "num_experts_per_tok": 8, "num_hidden_layers": 61,
  "num_key_value_heads": 128, "num_nextn_predict_layers": 1, "q_lora_rank": 1536, "qk_nope_head_dim": 128,
  "qk_rope_head_dim": 64, "rms_norm_eps": 1e-06, "rope_theta": 10000, "tie_word_embeddings": false,
  "topk_group": 4, "v_head_dim": 128, "vocab_size": 129280})";
inline constexpr const char* kGpt2 =
    R"({"model_type": "gpt2", "activation_function": "gelu_new", "layer_norm_epsilon": 1e-05,
  "n_ctx": 1024, "n_embd": 768, "n_head": 12, "n_layer": 12, "n_positions": 1024, "vocab_size": 50257})";
inline constexpr const char* kMamba2 =
    R"({"model_type": "mamba2", "chunk_size": 256, "conv_kernel": 4, "expand": 2, "head_dim": 64,
  "hidden_act": "silu", "hidden_size": 4096, "layer_norm_epsilon": 1e-05, "n_groups": 8, "num_heads": 128,
  "num_hidden_layers": 64, "residual_in_fp32": true, "rms_norm": true, "state_size": 128,
  "tie_word_embeddings": false, "time_step_rank": 256, "use_bias": false, "use_conv_bias": true,
  "vocab_size": 32768})";
inline constexpr const char* kPythia = R"({"model_type": "gpt_neox", "hidden_act": "gelu", "hidden_size": 4096,
  "intermediate_size": 16384, "layer_norm_eps": 1e-05, "num_attention_heads": 32, "num_hidden_layers": 32,
  "rotary_emb_base": 10000, "rotary_pct": 0.25, "tie_word_embeddings": false, "use_parallel_residual": true,
  "vocab_size": 50432})";

inline constexpr const char* kOpt =
    R"({"model_type": "opt", "hidden_size": 4096, "ffn_dim": 16384, "num_hidden_layers": 32,
  "num_attention_heads": 32, "vocab_size": 50272, "max_position_embeddings": 2048, "word_embed_proj_dim": 4096})";
inline constexpr const char* kStableLm = R"({"model_type": "stablelm", "hidden_size": 2560, "intermediate_size": 6912,
  "num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 32, "vocab_size": 50304})";
inline constexpr const char* kDeepSeekV2 =
    R"({"model_type": "deepseek_v2", "first_k_dense_replace": 1, "hidden_act": "silu",
  "hidden_size": 5120, "intermediate_size": 12288, "kv_lora_rank": 512, "moe_intermediate_size": 1536,
  "moe_layer_freq": 1, "n_group": 8, "n_routed_experts": 160, "n_shared_experts": 2, "num_attention_heads": 128,
  "num_experts_per_tok": 6, "num_hidden_layers": 60, "num_key_value_heads": 128, "q_lora_rank": 1536,
  "qk_nope_head_dim": 128, "qk_rope_head_dim": 64, "rms_norm_eps": 1e-06, "rope_theta": 10000,
  "tie_word_embeddings": false, "topk_group": 3, "v_head_dim": 128, "vocab_size": 102400})";
inline constexpr const char* kNemotron = R"({"model_type": "nemotron", "hidden_size": 6144, "intermediate_size": 24576,
  "num_hidden_layers": 32, "num_attention_heads": 48, "num_key_value_heads": 8, "vocab_size": 256000,
  "hidden_act": "relu2", "partial_rotary_factor": 0.5, "norm_eps": 1e-5})";

inline constexpr const char* kJamba = R"({"model_type": "jamba", "attn_layer_offset": 4, "attn_layer_period": 8,
  "expert_layer_offset": 1, "expert_layer_period": 2, "hidden_act": "silu", "hidden_size": 4096,
  "intermediate_size": 14336, "mamba_conv_bias": true, "mamba_d_conv": 4, "mamba_d_state": 16, "mamba_dt_rank": 256,
  "mamba_expand": 2, "mamba_proj_bias": false, "num_attention_heads": 32, "num_experts": 16, "num_experts_per_tok": 2,
  "num_hidden_layers": 32, "num_key_value_heads": 8, "rms_norm_eps": 1e-06, "sliding_window": null,
  "tie_word_embeddings": false, "vocab_size": 65536})";
inline constexpr const char* kQwen3Next =
    R"({"model_type": "qwen3_next", "attention_bias": false, "decoder_sparse_step": 1,
  "full_attention_interval": 4, "head_dim": 256, "hidden_act": "silu", "hidden_size": 2048, "intermediate_size": 5120,
  "linear_conv_kernel_dim": 4, "linear_key_head_dim": 128, "linear_num_key_heads": 16, "linear_num_value_heads": 32,
  "linear_value_head_dim": 128, "mlp_only_layers": [], "moe_intermediate_size": 512, "norm_topk_prob": true,
  "num_attention_heads": 16, "num_experts": 512, "num_experts_per_tok": 10, "num_hidden_layers": 48,
  "num_key_value_heads": 2, "partial_rotary_factor": 0.25, "rms_norm_eps": 1e-06, "rope_theta": 10000000,
  "shared_expert_intermediate_size": 512, "tie_word_embeddings": false, "vocab_size": 151936})";
inline constexpr const char* kNemotronH =
    R"({"model_type": "nemotron_h", "attention_bias": false, "attention_head_dim": 128,
  "chunk_size": 128, "conv_kernel": 4, "expand": 2, "hidden_size": 4096,
  "hybrid_override_pattern": "M-M-M-M*-M-M-M-M-M*-M-M-M-M-M*-M-M-M-M-M*-M-M-M-M-M-", "intermediate_size": 21504,
  "mamba_head_dim": 64, "mamba_num_heads": 128, "mamba_proj_bias": false, "mlp_bias": false, "mlp_hidden_act": "relu2",
  "n_groups": 8, "num_attention_heads": 32, "num_hidden_layers": 52, "num_key_value_heads": 8, "rms_norm_eps": 1e-05,
  "ssm_state_size": 128, "tie_word_embeddings": false, "use_bias": false, "use_conv_bias": true, "vocab_size": 131072})";
inline constexpr const char* kFalconH1 = R"({"model_type": "falcon_h1", "attention_bias": false, "head_dim": 128,
  "hidden_act": "silu", "hidden_size": 5120, "intermediate_size": 21504, "mamba_chunk_size": 256,
  "mamba_conv_bias": true, "mamba_d_conv": 4, "mamba_d_head": 128, "mamba_d_ssm": 4096, "mamba_d_state": 256,
  "mamba_n_groups": 2, "mamba_n_heads": 32, "mamba_proj_bias": false, "mamba_rms_norm": true, "mlp_bias": false,
  "num_attention_heads": 20, "num_hidden_layers": 72, "num_key_value_heads": 4, "projectors_bias": false,
  "rms_norm_eps": 1e-05, "rope_theta": 100000000000.0, "tie_word_embeddings": false, "vocab_size": 261120})";

}  // namespace plumb::test
