/** Small rules that many kinds share (L1): required fields, enumerations, and keeping one half of an object when the other is written. */
import { type FieldError, type FieldPath, fieldError } from '#api/machinery/fieldPath'
import type { KubeObject, ObjectMeta } from '#api/machinery/meta'
import type { SubresourceStrategy, UpdateInput } from './defineKind.ts'

type Fields = Record<string, unknown>

/** One error per message. */
export function faults(path: FieldPath, value: unknown, messages: readonly string[]): FieldError[] {
  return messages.map((message) => fieldError.invalid(path, value, message))
}

/** Required and one of a few words. */
export function oneOf(value: string | undefined, supported: readonly string[], path: FieldPath): FieldError[] {
  if (!value) return [fieldError.required(path)]
  return supported.includes(value) ? [] : [fieldError.notSupported(path, value, supported)]
}

export function positive(value: number | undefined, path: FieldPath): FieldError[] {
  return value !== undefined && value <= 0 ? [fieldError.invalid(path, value, 'must be greater than 0')] : []
}

/** The main endpoint never writes the status: it stays as it was. */
export function keepStatus<T extends KubeObject>({ obj, old }: Pick<UpdateInput<T>, 'obj' | 'old'>): void {
  keepFields(obj, old, ['status'])
}

/** New objects have no status but what their kind gives them. */
export function dropStatus(obj: KubeObject, initial: unknown = {}): void {
  ;(obj as unknown as Fields).status = initial
}

/** Restores the named top-level fields of the old object. */
export function keepFields(obj: KubeObject, old: unknown, names: readonly string[]): void {
  const target = obj as unknown as Fields
  for (const name of names) {
    const value = (old as Fields)[name]
    if (value === undefined) delete target[name]
    else target[name] = value
  }
}

/** The metadata that a write of the status does not change in the kinds that reset it. Upstream: metav1.ResetObjectMetaForStatus. */
export const resetMetadata = ['labels', 'annotations', 'finalizers', 'ownerReferences'] as const satisfies readonly (keyof ObjectMeta)[]

/**
 * The status endpoint writes nothing but the status (and metadata, but for the named fields of it).
 * @param keepMetadata fields of metadata that this kind protects too
 */
export function statusStrategy<T extends KubeObject>(
  rules: {
    readonly keepMetadata?: readonly (keyof ObjectMeta)[]
    /** What the kind fills in, once all but the status is as it was. */
    prepareForUpdate?(input: UpdateInput<T>): void
    validateUpdate?(input: UpdateInput<T>): readonly FieldError[]
  } = {},
): SubresourceStrategy<T> {
  return {
    // If the endpoint changes no metadata, no manager owns any of it.
    resetFields: rules.keepMetadata === resetMetadata ? ['metadata', 'spec'] : ['spec'],
    prepareForUpdate(input) {
      const { obj, old } = input
      const others = [...Object.keys(obj), ...Object.keys(old)].filter((key) => !['apiVersion', 'kind', 'metadata', 'status'].includes(key))
      keepFields(obj, old, others)
      for (const field of rules.keepMetadata ?? []) {
        const metadata = obj.metadata as Fields
        const value = (old.metadata as Fields)[field]
        if (value === undefined) delete metadata[field]
        else metadata[field] = value
      }
      rules.prepareForUpdate?.(input)
    },
    ...(rules.validateUpdate ? { validateUpdate: rules.validateUpdate } : {}),
  }
}
