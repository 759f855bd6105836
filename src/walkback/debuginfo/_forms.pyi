from walkback.debuginfo.sections import DebugSections

class FormReader:
    def __init__(self, sections: DebugSections, big: bool) -> None: ...
