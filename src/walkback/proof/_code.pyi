from walkback.proof.image import Image
from walkback.proof.prove import Known

class Code:
    def __init__(self, image: Image, known: Known) -> None: ...
