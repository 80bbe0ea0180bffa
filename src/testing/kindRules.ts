/**
 * Tables over one kind's file: refused values with their errors, defaults, and warnings. Each row changes a good object and
 * names every error as `field: text`, so that a row that expects nothing proves that the object is accepted. Objects are decoded as requests are.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { KindStrategy, StrategyContext } from '#api/kinds/defineKind'
import { type FieldError, FieldPath } from '#api/machinery/fieldPath'
import type { Frozen, KubeObject } from '#api/machinery/meta'
import { schemaFor } from '#api/schema/builtIn'
import { decode } from '#api/schema/decode'
import { seededRandom } from '#base/random'

const path = FieldPath.of()
const context: StrategyContext = { nowMs: 0, random: seededRandom(1), user: { name: 'tester', groups: ['testers'] } }

/** Sets `spec.a.0.b` in a copy; undefined removes the field. */
export function changed<T>(object: T, changes: Readonly<Record<string, unknown>>): T {
  const copy = structuredClone(object)
  for (const [dotted, value] of Object.entries(changes)) {
    const names = dotted.split('.')
    const last = names.pop() ?? ''
    let at = copy as Record<string, unknown>
    for (const name of names) {
      at[name] ??= {}
      at = at[name] as Record<string, unknown>
    }
    if (value === undefined) delete at[last]
    else at[last] = structuredClone(value)
  }
  return copy
}

export function errorTexts(errors: readonly FieldError[] | undefined): string[] {
  return (errors ?? []).map(({ field, body }) => `${field}: ${body}`)
}

type Changes = Readonly<Record<string, unknown>>
/** [name, changes to the good object, wanted errors]. */
export type CreateRow = readonly [string, Changes, readonly string[]]
/** [name, changes from the old object to the new one, wanted errors, changes that the old one has already]. */
export type UpdateRow = readonly [string, Changes, readonly string[], Changes?]

/** Tests of one kind, named after a row of the feature map. */
export function kindRules<T extends KubeObject>(row: string, strategy: KindStrategy<T>, good: T) {
  const named = (name: string) => `${row} ${strategy.kind}: ${name}`
  const version = good.apiVersion.split('/').at(-1) ?? 'v1'
  const schema = schemaFor(strategy.group, version, strategy.kind)
  assert.ok(schema)
  const decoded = (object: T) => {
    const { object: filled, unknownFields } = decode(object, schema, { unknown: 'collect' })
    assert.deepEqual(unknownFields, [])
    return filled as unknown as T
  }
  const withDefaults = (object: T) => {
    const filled = decoded(object)
    strategy.defaults?.(filled, version)
    return filled
  }
  const updateOf = (from: Changes, to: Changes) => {
    const old = withDefaults(changed(good, from))
    return { obj: withDefaults(changed(old, to)), old: old as Frozen<T>, path, context }
  }
  return {
    defaults(name: string, given: Changes, want: Changes) {
      test(named(`defaults: ${name}`), () => assert.deepEqual(withDefaults(changed(good, given)), decoded(changed(good, { ...given, ...want }))))
    },
    create(rows: readonly CreateRow[]) {
      for (const [name, changes, want] of rows)
        test(named(`create: ${name}`), () =>
          assert.deepEqual(errorTexts(strategy.validate?.({ obj: withDefaults(changed(good, changes)), path, context })), want),
        )
    },
    update(rows: readonly UpdateRow[]) {
      for (const [name, to, want, from = {}] of rows)
        test(named(`update: ${name}`), () => assert.deepEqual(errorTexts(strategy.validateUpdate?.(updateOf(from, to))), want))
    },
    /** Through a subresource: its own preparation first. `status` is the status endpoint. */
    subresource(name: string, rows: readonly UpdateRow[]) {
      const view = name === 'status' ? strategy.status : strategy.subresources?.[name]
      for (const [row, to, want, from = {}] of rows)
        test(named(`${name}: ${row}`), () => {
          const input = updateOf(from, to)
          view?.prepareForUpdate?.(input)
          assert.deepEqual(errorTexts(view?.validateUpdate?.(input)), want)
        })
    },
    warnings(name: string, changes: Changes, want: readonly string[]) {
      test(named(`warnings: ${name}`), () => assert.deepEqual(strategy.warnings?.({ obj: changed(good, changes), path, context }) ?? [], want))
    },
    /** The cells of a row, by column, without the age. */
    cells(name: string, changes: Changes, want: Readonly<Record<string, unknown>>) {
      test(named(`columns: ${name}`), () => {
        const object = changed(good, changes) as Frozen<T>
        const cells = (strategy.columns ?? []).filter((column) => column.name !== 'Age').map((column) => [column.name, column.value(object, 0)])
        assert.deepEqual(Object.fromEntries(cells), want)
      })
    },
  }
}
