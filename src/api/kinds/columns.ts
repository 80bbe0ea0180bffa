/** Columns and cell texts that many kinds share (L1). Upstream: kubernetes/pkg/printers/internalversion/printers.go (v1.36). */
import type { Container } from '#api/gen/types/core.v1'
import type { LabelSelector } from '#api/gen/types/meta.v1'
import { formatLabelSelector } from '#api/machinery/labelSelector'
import type { Frozen, KubeObject } from '#api/machinery/meta'
import { ageOf } from '#api/tables/table'
import type { Column } from './defineKind.ts'

type Value<T> = Column<T>['value']

export const none = '<none>'
export const unset = '<unset>'

export const nameColumn: Column<KubeObject> = { name: 'Name', type: 'string', format: 'name', value: (obj) => obj.metadata.name ?? '' }
export const ageColumn: Column<KubeObject> = { name: 'Age', type: 'string', value: (obj, nowMs) => ageOf(obj.metadata.creationTimestamp, nowMs) }

/** A text column. */
export function text<T>(name: string, value: Value<T>, priority = 0): Column<T> {
  return { name, type: 'string', value, priority }
}

/** A whole-number column; absent is 0. */
export function integer<T>(name: string, value: (obj: Frozen<T>) => number | undefined): Column<T> {
  return { name, type: 'integer', value: (obj) => value(obj) ?? 0 }
}

/** A true or false column. */
export function boolean<T>(name: string, value: Value<T>): Column<T> {
  return { name, type: 'boolean', value }
}

/** Containers, Images and Selector, which workloads show with -o wide. */
export function workloadColumns<T>(
  containers: (obj: Frozen<T>) => readonly Frozen<Container>[] | undefined,
  selector?: (obj: Frozen<T>) => string,
): Column<T>[] {
  return [
    text<T>('Containers', (obj) => (containers(obj) ?? []).map((container) => container.name).join(','), 1),
    text<T>('Images', (obj) => (containers(obj) ?? []).map((container) => container.image ?? '').join(','), 1),
    ...(selector ? [text<T>('Selector', selector, 1)] : []),
  ]
}

/** A LabelSelector field's text. */
export function selectorText(selector: Frozen<LabelSelector> | undefined): string {
  try {
    return formatLabelSelector(selector)
  } catch {
    return '<error>'
  }
}

/** `a=b,c=d`, or `<none>`. */
export function labelsText(labels: Readonly<Record<string, string>> | undefined): string {
  const pairs = Object.entries(labels ?? {})
    .map(([key, value]) => `${key}=${value}`)
    .sort()
  return pairs.join(',') || none
}
