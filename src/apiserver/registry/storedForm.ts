/**
 * The form of built-in kinds in etcd (L3, pure): upstream's versions, as protobuf, JSON or YAML. Values of any of these forms are read. Custom resources,
 * their definitions and APIServices are always JSON.
 * Upstream: apiserver/pkg/server/storage/storage_codec.go, pkg/controlplane/apiserver/{apiextensions,aggregator}.go (v1.36).
 */

import type { StorageFacts } from '#api/discovery/resources'
import { parseExactly } from '#api/machinery/json'
import { groupVersion, type KubeObject, parseGroupVersion } from '#api/machinery/meta'
import { parseYaml, toYaml } from '#api/machinery/yaml'
import { apiVersionOf, decodeProtobuf, encodeProtobuf, isProtobuf, protobufMediaType } from '#api/protobuf/envelope'
import { schemaFor } from '#api/schema/builtIn'
import { withoutNils, withRequiredLists } from '#api/schema/nils'
import type { Schema } from '#api/schema/schema'
import { deepCopy } from '#base/frozen'
import { isLargeObject } from '../core/fairLoop.ts'
import { encodeStored } from '../core/watch/cacheEntry.ts'

export const storageMediaTypes = ['application/json', 'application/yaml', protobufMediaType] as const

export type StorageMediaType = (typeof storageMediaTypes)[number]

export interface StoredForm {
  /** @param plain the registry's own JSON of the object */
  encode(object: KubeObject, plain: Uint8Array): Uint8Array
  /** @returns JSON or protobuf of the version that the registry holds. @throws Error when the value is in no known form */
  decode(value: Uint8Array): Uint8Array
  /** Whether `encode` would write a value in this form. */
  isCurrent(value: Uint8Array): boolean
}

export interface StoredKind {
  readonly storage: Omit<StorageFacts, 'prefix'>
  readonly kind: string
  /** Absent: the one of the API's kind. */
  readonly schema?: Schema | undefined
  readonly convert?: ((object: KubeObject, from: string, to: string) => KubeObject) | undefined
}

/** Groups whose servers write JSON, whatever the flag says. */
const alwaysJson: ReadonlySet<string> = new Set(['apiextensions.k8s.io', 'apiregistration.k8s.io'])
const openingBrace = 0x7b

export function storedFormOf(kind: StoredKind, mediaType: StorageMediaType): StoredForm {
  const { group, version, writtenVersion = version } = kind.storage
  const [held, written] = [groupVersion({ group, version }), groupVersion({ group, version: writtenVersion })]
  const used = alwaysJson.has(group) ? 'application/json' : mediaType
  const encoder = encoders[used]
  return {
    encode(object, plain) {
      if (held === written) return encoder(object, plain, kind.schema)
      const converted = inVersion(kind, deepCopy<KubeObject>(object), writtenVersion)
      return encoder(converted, encodeStored(converted), kind.schema)
    },
    decode: (value) => decodeAs(kind, held, value),
    isCurrent: (value) => (formOf(value) === used || isLargeJson(value, used)) && versionIn(value) === written,
  }
}

const encoders: Readonly<Record<StorageMediaType, (object: KubeObject, plain: Uint8Array, schema: Schema | undefined) => Uint8Array>> = {
  'application/json': (_object, plain) => plain,
  [protobufMediaType]: (object, _plain, schema) =>
    encodeProtobuf(withoutResourceVersion(object), schema ?? schemaOf(object.apiVersion ?? '', object.kind ?? '')),
  // JSON is YAML, too; printing a large object would take long.
  'application/yaml': (_object, plain) => (isLargeObject(plain.length) ? plain : Buffer.from(toYaml(parseExactly(plain)))),
}

/** A large value in the form that the YAML encoder gives it. */
function isLargeJson(value: Uint8Array, used: StorageMediaType): boolean {
  return used === 'application/yaml' && formOf(value) === 'application/json' && isLargeObject(value.length)
}

function withoutResourceVersion(object: KubeObject): KubeObject & { apiVersion: string; kind: string } {
  const { resourceVersion: _, ...metadata } = object.metadata
  return { ...object, metadata } as KubeObject & { apiVersion: string; kind: string }
}

function schemaOf(apiVersion: string, kind: string) {
  const { group, version } = parseGroupVersion(apiVersion)
  const schema = schemaFor(group, version, kind)
  if (!schema) throw new Error(`no kind "${kind}" is registered for version "${apiVersion}"`)
  return schema
}

function formOf(value: Uint8Array): StorageMediaType {
  if (isProtobuf(value)) return protobufMediaType
  return value[0] === openingBrace ? 'application/json' : 'application/yaml'
}

/** apiVersion is among the first fields of each form: upstream's JSON has kind before it, its YAML sorts the names. */
const jsonVersion = /^\{(?:"kind":"[^"\\]*",)?"apiVersion":"([^"\\]*)"/
const yamlVersion = /^apiVersion: ([^\s'"]+)$/m

/** Undefined where it must be looked for in the parsed object. */
function versionIn(value: Uint8Array): string | undefined {
  if (isProtobuf(value)) return apiVersionOf(value)
  const head = Buffer.from(value.buffer, value.byteOffset, Math.min(value.byteLength, 300)).toString('latin1')
  return (value[0] === openingBrace ? jsonVersion : yamlVersion).exec(head)?.[1]
}

function decodeAs(kind: StoredKind, held: string, value: Uint8Array): Uint8Array {
  const form = formOf(value)
  // What the cache parses by itself passes unchanged.
  if (form !== 'application/yaml' && versionIn(value) === held) return value
  const object = parse(value, form)
  const { group, version } = parseGroupVersion(String(object.apiVersion))
  if (object.apiVersion === held || group !== kind.storage.group) return encodeStored(object)
  if (!isKnownVersion(kind, version)) throw new Error(`no kind "${object.kind}" is registered for version "${object.apiVersion}"`)
  return encodeStored(inVersion(kind, object, kind.storage.version))
}

function parse(value: Uint8Array, form: StorageMediaType): KubeObject {
  if (form === protobufMediaType) return withRequiredLists(decodeProtobuf(value, schemaOf) as unknown as KubeObject)
  const object = parseText(Buffer.from(value.buffer, value.byteOffset, value.byteLength).toString(), form)
  if (typeof object !== 'object' || object === null || Array.isArray(object)) throw new Error('the value is no object')
  return withoutNils(object) as KubeObject
}

/** Parsers quote what they cannot read: that may be a Secret, and the message goes to the log. */
function parseText(text: string, form: StorageMediaType): unknown {
  try {
    return form === 'application/json' ? parseExactly(text) : parseYaml(text)
  } catch {
    throw new Error(`the value is no ${form === 'application/json' ? 'JSON' : 'YAML'}`)
  }
}

function isKnownVersion({ storage, kind, convert }: StoredKind, version: string): boolean {
  return version === storage.writtenVersion || (convert !== undefined && schemaFor(storage.group, version, kind) !== undefined)
}

/** Changes the object. */
function inVersion({ storage, convert }: StoredKind, object: KubeObject, to: string): KubeObject {
  const { version: from } = parseGroupVersion(object.apiVersion ?? '')
  const converted = convert ? convert(object, from, to) : object
  converted.apiVersion = groupVersion({ group: storage.group, version: to })
  return converted
}
