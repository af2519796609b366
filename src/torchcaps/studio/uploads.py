"""A picture that somebody sends: decoded in memory, within limits, into what the network takes."""

from __future__ import annotations

import io

from torchcaps.data.optional import pillow_image
from torchcaps.data.readers.pictures import PICTURE_KINDS, PILLOW_FORMATS
from torchcaps.data.readers.written_digit import Invert
from torchcaps.errors import TorchcapsError
from torchcaps.eval.picture_form import SeenPicture
from torchcaps.studio.network import Network
from torchcaps.studio.refusal import RefusalError

__all__ = ["MOST_PIXELS", "Invert", "read_upload"]

MOST_PIXELS = 25_000_000


def read_upload(content: bytes, network: Network, invert: Invert) -> SeenPicture:
    """The picture as the network sees it, by the rule of ``torchcaps predict``."""
    form = network.form
    try:
        form.check()
    except TorchcapsError as error:
        raise RefusalError(str(error)) from error
    if not content:
        raise RefusalError("the body is empty; send the bytes of a picture")
    image = pillow_image()
    try:
        with image.open(io.BytesIO(content), formats=PILLOW_FORMATS) as picture:
            width, height = picture.size  # known from the header, before a pixel is unpacked
            if width * height > MOST_PIXELS:
                raise RefusalError(
                    f"the picture has {width}×{height} pixels, the limit is {MOST_PIXELS:,}; scale it down"
                )
            flat = form.flat(picture)
    except RefusalError:
        raise
    except image.DecompressionBombError as error:  # Pillow's own limit, which is far above this one
        raise RefusalError(f"the picture has more than {MOST_PIXELS:,} pixels; scale it down") from error
    except Exception as error:  # decoders raise all kinds of exceptions on damaged bytes
        raise RefusalError(
            f"this is not a whole picture of a kind that is read ({PICTURE_KINDS}); send one of those"
        ) from error
    return form.seen(flat, invert)
