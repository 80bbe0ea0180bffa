/**
 * The compiled schema (L1): one structure for built-in kinds and CRDs. Decoding, strict field validation, pruning, defaulting,
 * strategic merge, server-side apply, protobuf, OpenAPI and `kubectl explain` are each written once, against it.
 * Nodes may be recursive (JSONSchemaProps), so element and field schemas are reached through the node, resolved on first use.
 */

/** The JSON shape a value must have. */
export type SchemaType = 'object' | 'map' | 'array' | 'string' | 'integer' | 'number' | 'boolean' | 'any'

/** The meaning of a scalar (or any) beyond its JSON type. `int-or-string` and `quantity` accept numbers and strings. */
export type SchemaFormat =
  | 'int32'
  | 'int64'
  | 'double'
  | 'byte'
  | 'date-time'
  | 'micro-time'
  | 'quantity'
  | 'duration'
  | 'int-or-string'
  | 'raw-extension'
  | 'fields-v1'
  | 'json'

export interface Schema {
  readonly type: SchemaType
  readonly format?: SchemaFormat | undefined
  /** The definition's name when the object is a named one, e.g. `io.k8s.api.core.v1.Container`. */
  readonly definition?: string | undefined
  /** Type object: its fields by JSON name. Absent fields are unknown fields. */
  readonly fields?: ReadonlyMap<string, Field> | undefined
  /** The schema of a map's values or of an array's items. */
  readonly element?: Schema | undefined
  readonly listType?: 'atomic' | 'set' | 'map' | undefined
  /** For listType map: the fields that identify an item. */
  readonly listMapKeys?: readonly string[] | undefined
  /** Type object or map. */
  readonly mapType?: 'atomic' | 'granular' | undefined
  /** Strategic merge: 'merge', 'replace', 'retainKeys' (several may apply). */
  readonly patchStrategies?: readonly string[] | undefined
  readonly patchMergeKey?: string | undefined
  readonly enum?: readonly string[] | undefined
  /** Keep fields that the schema does not know (CRDs, RawExtension). */
  readonly preserveUnknownFields?: boolean | undefined
  /** CRDs: null is a value; elsewhere it means absent. */
  readonly nullable?: boolean | undefined
  /** CRDs: the value is an object with apiVersion, kind and metadata of its own. */
  readonly embeddedResource?: boolean | undefined
  /** CRDs: the value that replaces a null item of a list or value of a map; the defaults of fields are in {@link Field}. */
  readonly elementDefault?: unknown
  /** Type object of a built-in kind: the values of omitted fields. */
  readonly zeros?: readonly ZeroField[] | undefined
}

export interface Field {
  readonly name: string
  readonly schema: Schema
  readonly required: boolean
  /** A pointer upstream: an explicit zero differs from absent. Absent for CRDs. */
  readonly pointer?: boolean | undefined
  /** Upstream always has it, empty at worst: structs that are no pointers, fields that are never omitted. Absent for CRDs. */
  readonly alwaysPresent?: boolean | undefined
  /** A constant default, as JSON, from `+default` markers and CRD schemas; kinds add the computed ones. */
  readonly default?: unknown
  /** Protobuf field number and the facts' type code; `within`: numbers of enclosing messages that JSON shows inline. Absent for CRDs. */
  readonly protobuf?: { readonly number: number; readonly type: string; readonly within?: readonly number[] | undefined } | undefined
}

/** A field that upstream always has: either a scalar, or a struct to create. */
export interface ZeroField {
  readonly name: string
  readonly scalar: string | number | boolean
  readonly struct?: Schema | undefined
}
