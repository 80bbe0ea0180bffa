/** What the flags of a server say about stored values (L3): encryption and media type. */
import type { ResourceTransformers } from '../encryption/encryption.ts'
import { formatGroupResource, type GroupResource } from '../encryption/groupResource.ts'
import type { StorageMediaType, StoredForm } from './storedForm.ts'
import { StoredValues } from './storedValues.ts'

export interface StorageSettings {
  /** Encryption of stored values; absent: none. */
  readonly transformers?: ResourceTransformers | undefined
  /** The form of built-in kinds in the store; absent: the registry's own JSON, also for custom resources. */
  readonly mediaType?: StorageMediaType | undefined
}

/** @param form absent: the registry's own JSON */
export function storedValuesOf({ transformers }: StorageSettings, resource: GroupResource, form?: StoredForm): StoredValues {
  return new StoredValues(formatGroupResource(resource), transformers?.transformerFor(resource), form)
}
