from walkback.proof.image import Image
from walkback.proof.known import KnownCode

class Code:
    def __init__(self, image: Image, known: KnownCode) -> None: ...
