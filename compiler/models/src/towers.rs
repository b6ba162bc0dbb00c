//! Encoders of images and sound in files of text models.
//!
//! Publishers usually put an encoder into its own file (`mmproj`). Ollama and some converters keep the encoder in the
//! model's file. llama.cpp then finds more tensors than the text model has, and stops.

use super::summary::Summary;

/// Part before the first dot of tensor names that only encoders and projectors have.
const TOWERS: [(&str, Tower); 20] = [
    ("v", Tower::Image),
    ("a", Tower::Sound),
    ("mm", Tower::Projector),
    ("s", Tower::Image),
    ("mmproj", Tower::Projector),
    ("resampler", Tower::Projector),
    ("adapter", Tower::Projector),
    ("vision", Tower::Image),
    ("visual", Tower::Image),
    ("vision_model", Tower::Image),
    ("vision_tower", Tower::Image),
    ("vision_encoder", Tower::Image),
    ("vision_embedder", Tower::Image),
    ("embed_vision", Tower::Projector),
    ("audio", Tower::Sound),
    ("audio_tower", Tower::Sound),
    ("audio_encoder", Tower::Sound),
    ("embed_audio", Tower::Projector),
    ("multi_modal_projector", Tower::Projector),
    ("vision_projection", Tower::Projector),
];

/// The kind of an encoder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tower {
    /// An encoder of images.
    Image,
    /// An encoder of sound.
    Sound,
    /// The projection from the encoder's to the model's width.
    Projector,
}

impl Tower {
    /// Returns the encoder that a tensor's name belongs to; `None` for other tensors.
    pub fn of(name: &str) -> Option<Tower> {
        let name = name.strip_prefix("model.").unwrap_or(name);
        let (first, _) = name.split_once('.')?;
        let known = TOWERS.iter().find(|(prefix, _)| *prefix == first);
        known.map(|(_, tower)| *tower)
    }
}

impl Summary {
    /// Returns the encoders' tensors, in file order.
    pub fn towers(&self) -> impl Iterator<Item = (&str, Tower)> {
        let named = self.unused.iter();
        named.filter_map(|name| Some((name.as_str(), Tower::of(name)?)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn encoders_are_known_by_their_names() {
        for (name, expected) in [
            ("v.blk.0.attn_q.weight", Some(Tower::Image)),
            ("a.conv1d.1.weight", Some(Tower::Sound)),
            ("mm.0.weight", Some(Tower::Projector)),
            ("mm.input_projection.weight", Some(Tower::Projector)),
            ("s.blk.3.attn.qkv.weight", Some(Tower::Image)),
            ("model.vision_tower.patch.weight", Some(Tower::Image)),
            ("blk.0.attn_q.weight", None),
            ("output.weight", None),
            ("v", None),
            ("value.weight", None),
        ] {
            assert_eq!(Tower::of(name), expected, "{name}");
        }
    }
}
