"""config.json of the family as one flat object.  Accepts the nested and the text-only form."""
import json
import os


class Config:
    """Flat view of config.json, with the family's defaults for absent fields."""

    def __init__(self, raw):
        t = raw.get("text_config", raw)
        g = t.get
        self.raw = raw
        self.vocab = g("vocab_size", 248320)
        self.hidden = g("hidden_size", 4096)
        self.inter = g("intermediate_size", 12288)
        self.layers = g("num_hidden_layers", 32)
        self.heads = g("num_attention_heads", 16)
        self.kv_heads = g("num_key_value_heads", 4)
        self.head_dim = g("head_dim") or 256
        self.eps = g("rms_norm_eps", 1e-6)
        self.conv_k = g("linear_conv_kernel_dim", 4)
        self.dk = g("linear_key_head_dim", 128)
        self.dv = g("linear_value_head_dim", 128)
        self.nk = g("linear_num_key_heads", 16)
        self.nv = g("linear_num_value_heads", 32)
        kinds = g("layer_types")
        if not kinds:
            every = g("full_attention_interval", 4)
            kinds = ["full_attention" if (i + 1) % every == 0 else "linear_attention"
                     for i in range(self.layers)]
        self.kinds = kinds
        rp = g("rope_parameters") or g("rope_scaling") or {}
        self.theta = float(rp.get("rope_theta", g("rope_theta", 1e7)))
        self.rot = int(self.head_dim * rp.get("partial_rotary_factor", g("partial_rotary_factor", 0.25)))
        self.sections = rp.get("mrope_section", [11, 11, 10])
        self.tied = bool(g("tie_word_embeddings", raw.get("tie_word_embeddings", False)))
        self.mtp_layers = g("mtp_num_hidden_layers", 0)
        self.image_id = raw.get("image_token_id", 248056)
        self.video_id = raw.get("video_token_id", 248057)
        self.vision_start_id = raw.get("vision_start_token_id", 248053)
        self.vision_end_id = raw.get("vision_end_token_id", 248054)
        self.key_dim = self.nk * self.dk
        self.val_dim = self.nv * self.dv
        v = raw.get("vision_config")
        self.vision = None
        if v:
            vg = v.get
            self.vision = dict(depth=vg("depth", 27), hidden=vg("hidden_size", 1152),
                               inter=vg("intermediate_size", 4304), heads=vg("num_heads", 16),
                               chans=vg("in_channels", 3), patch=vg("patch_size", 16),
                               tpatch=vg("temporal_patch_size", 2), merge=vg("spatial_merge_size", 2),
                               out=vg("out_hidden_size", self.hidden),
                               npos=vg("num_position_embeddings", 2304),
                               theta=float((vg("rope_parameters") or {}).get("rope_theta", 10000.0)))

    @staticmethod
    def load(directory):
        return Config(json.load(open(os.path.join(directory, "config.json"))))
