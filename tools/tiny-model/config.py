"""The architecture of the tiny model: the dict that becomes config.json, and its numbers by name.

7.6 million parameters. Two groups of three gated-delta layers and one attention layer, one MTP
layer, and a vision tower of three blocks.
"""
from types import SimpleNamespace

from family_tokenizer import CONTROL_TOKENS
from make_tokenizer import BPE_TOKENS, CONTEXT_TOKENS, LAYOUT

EMBEDDING_ROWS = 2048  # more than there are ids, as in the releases: the rest must never be chosen
KINDS = ["linear_attention", "linear_attention", "linear_attention", "full_attention"] * 2
ROPE = dict(rope_type="default", rope_theta=10000000, partial_rotary_factor=0.25, mrope_section=[11, 11, 10],
            mrope_interleaved=True)

TEXT = dict(model_type="qwen3_5_text", vocab_size=EMBEDDING_ROWS, hidden_size=192, intermediate_size=512,
            num_hidden_layers=len(KINDS), layer_types=KINDS, full_attention_interval=4, num_attention_heads=2,
            num_key_value_heads=1, head_dim=256, linear_num_key_heads=2, linear_num_value_heads=4,
            linear_key_head_dim=128, linear_value_head_dim=128, linear_conv_kernel_dim=4, hidden_act="silu",
            rms_norm_eps=1e-6, attention_bias=False, attn_output_gate=True, mamba_ssm_dtype="float32",
            max_position_embeddings=CONTEXT_TOKENS, tie_word_embeddings=True, mtp_num_hidden_layers=1,
            mtp_use_dedicated_embeddings=False, eos_token_id=LAYOUT.control_id("<|endoftext|>"), dtype="bfloat16",
            use_cache=True, rope_parameters=ROPE)

VISION = dict(model_type="qwen3_5", depth=3, hidden_size=128, hidden_act="gelu_pytorch_tanh", intermediate_size=256,
              num_heads=2, in_channels=3, patch_size=16, temporal_patch_size=2, spatial_merge_size=2,
              out_hidden_size=TEXT["hidden_size"], num_position_embeddings=256, deepstack_visual_indexes=[])

CONFIG = dict(architectures=["Qwen3_5ForConditionalGeneration"], model_type="qwen3_5", language_model_only=False,
              image_token_id=LAYOUT.control_id("<|image_pad|>"), video_token_id=LAYOUT.control_id("<|video_pad|>"),
              vision_start_token_id=LAYOUT.control_id("<|vision_start|>"),
              vision_end_token_id=LAYOUT.control_id("<|vision_end|>"),
              text_config=TEXT, vision_config=VISION, tie_word_embeddings=True)

PREPROCESSOR = dict(size=dict(shortest_edge=4096, longest_edge=262144), patch_size=16, temporal_patch_size=2,
                    merge_size=2, image_mean=[0.5, 0.5, 0.5], image_std=[0.5, 0.5, 0.5],
                    processor_class="Qwen3VLProcessor", image_processor_type="Qwen2VLImageProcessorFast")

text = SimpleNamespace(**TEXT)
vision = SimpleNamespace(**VISION)

IMAGE_PAD = CONFIG["image_token_id"]
END_OF_TEXT = LAYOUT.control_id("<|endoftext|>")
END_OF_TURN = LAYOUT.control_id("<|im_end|>")
REAL_IDS = BPE_TOKENS + len(CONTROL_TOKENS)

KEY_WIDTH = text.linear_num_key_heads * text.linear_key_head_dim
VALUE_WIDTH = text.linear_num_value_heads * text.linear_value_head_dim
MIX_WIDTH = 2 * KEY_WIDTH + VALUE_WIDTH  # query, key and value channels of a gated-delta layer
DELTA_WIDTH = MIX_WIDTH + VALUE_WIDTH + 2 * text.linear_num_value_heads  # and its gates, beta and decay
HEAD_REPEAT = text.linear_num_value_heads // text.linear_num_key_heads
QUERY_WIDTH = text.num_attention_heads * text.head_dim
