// What the scripts of pages share, for those who check types; nothing of it is in a page.

/** What `PageColumns` of columns.py describes: name, kind and bytes of each column. */
export type Described = [name: string, kind: "u1" | "u2" | "u4" | "u8" | "t", bytes: number][];
export type Numbers = Uint8Array | Uint16Array | Uint32Array | Float64Array;

/** Attributes of an element; what is null or false is not there, and `onclick` and the like are listeners. */
export type Attributes = Record<string, string | number | boolean | null | undefined | ((event: any) => void)>;
export type Child = Node | string | false | null | undefined;
export type Children = Child | Child[];
