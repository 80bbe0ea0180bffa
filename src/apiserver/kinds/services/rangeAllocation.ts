/**
 * The stored form of an allocated range (L3, pure): core/v1 RangeAllocation, which no path of the API serves. It is written like every other resource of
 * the server: in the media type of the flags, and encrypted where `servicenodeportallocations` is configured.
 * Upstream: core/v1 RangeAllocation, pkg/registry/core/service/allocator/storage (v1.36).
 */
import type { KubeObject } from '#api/machinery/meta'
import { decodeProtobuf, isProtobuf } from '#api/protobuf/envelope'
import { schemaOfDefinition } from '#api/schema/builtIn'
import type { Schema } from '#api/schema/schema'
import { type StorageSettings, storedValuesOf } from '../../registry/storageSettings.ts'
import { storedFormOf } from '../../registry/storedForm.ts'
import type { StoredValues } from '../../registry/storedValues.ts'

export interface RangeAllocation {
  /** e.g. 30000-32767 */
  readonly range: string
  /** The allocated values as the bits of a big-endian number. */
  readonly data: Uint8Array
}

const kind = 'RangeAllocation'

/** @param resource the name in the configuration of encryption, such as `servicenodeportallocations` */
export function rangeAllocationValues(resource: string, settings: StorageSettings): StoredValues {
  const form = storedFormOf({ storage: { group: '', version: 'v1' }, kind, schema: rangeAllocationSchema() }, settings.mediaType ?? 'application/json')
  return storedValuesOf(settings, { group: '', resource }, form)
}

export function rangeAllocationObject({ range, data }: RangeAllocation): KubeObject {
  return { apiVersion: 'v1', kind, metadata: {}, range, data: Buffer.from(data).toString('base64') } as unknown as KubeObject
}

/** From what StoredValues reads: JSON or protobuf. @throws Error when it is no allocated range */
export function decodeRangeAllocation(value: Uint8Array): RangeAllocation {
  const { range, data } = (isProtobuf(value) ? decodeProtobuf(value, rangeAllocationSchema) : ofJson(value)) as { range?: unknown; data?: unknown }
  if (typeof range !== 'string') throw new Error('the stored range allocation names no range')
  return { range, data: typeof data === 'string' ? Buffer.from(data, 'base64') : new Uint8Array() }
}

function ofJson(value: Uint8Array): object {
  try {
    return Object(JSON.parse(Buffer.from(value).toString()))
  } catch {
    throw new Error('the value is no JSON')
  }
}

/** The OpenAPI, which schemas are made from, has only kinds that a path serves. */
function rangeAllocationSchema(): Schema {
  const text = (format?: 'byte'): Schema => ({ type: 'string', format })
  const field = (name: string, number: number, schema: Schema) => [name, { name, schema, required: false, protobuf: { number, type: '' } }] as const
  const metadata = schemaOfDefinition('io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta')
  return { type: 'object', fields: new Map([field('metadata', 1, metadata), field('range', 2, text()), field('data', 3, text('byte'))]) }
}
