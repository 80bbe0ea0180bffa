/**
 * The table columns of custom resources (L3): the name, then the version's additionalPrinterColumns, by default the age.
 * Upstream: apiextensions-apiserver/pkg/registry/customresource/tableconvertor.
 */

import type { CustomResourceColumnDefinition } from '#api/gen/types/apiextensions.v1'
import type { Column } from '#api/kinds/defineKind'
import { stringifyExactly } from '#api/machinery/exactIntegers'
import { compileFirstOfJsonPath } from '#api/machinery/jsonPath'
import type { Frozen, KubeObject } from '#api/machinery/meta'
import { parseTime } from '#base/time'

type CellValue = string | number | bigint | boolean | null

const name: Column<KubeObject> = { name: 'Name', type: 'string', format: 'name', value: (object) => object.metadata.name ?? '' }
const age: CustomResourceColumnDefinition = { name: 'Age', type: 'date', jsonPath: '.metadata.creationTimestamp' }

export function columnsOf(columns: readonly Frozen<CustomResourceColumnDefinition>[] | undefined): readonly Column<KubeObject>[] {
  return [name, ...(columns?.length ? columns : [age]).flatMap(columnOf)]
}

/** A path that does not parse gets no column: validation checks only its beginning. */
function columnOf(column: Frozen<CustomResourceColumnDefinition>): Column<KubeObject>[] {
  const find = tryCompile(column.jsonPath)
  if (!find) return []
  const type = column.type as Column<KubeObject>['type']
  return [
    {
      name: column.name,
      type,
      format: column.format,
      priority: column.priority,
      description: column.description || `Custom resource definition column (in JSONPath format): ${column.jsonPath}`,
      value: (object) => cell(type, find(object)),
    },
  ]
}

function tryCompile(path: string): ((value: unknown) => unknown) | undefined {
  try {
    return compileFirstOfJsonPath(path)
  } catch {
    return undefined
  }
}

/** The value as the column's type; null where it does not fit. */
function cell(type: Column<KubeObject>['type'], value: unknown): CellValue {
  if (value === undefined || value === null) return null
  switch (type) {
    case 'string':
      return typeof value === 'object' ? stringifyExactly(sorted(value)) : String(value)
    case 'integer':
      if (typeof value === 'bigint') return value
      return typeof value === 'number' ? Math.trunc(value) : null
    case 'number':
      return typeof value === 'number' || typeof value === 'bigint' ? Number(value) : null
    case 'boolean':
      return typeof value === 'boolean' ? value : null
    case 'date':
      if (typeof value !== 'string') return null
      return parseTime(value) === undefined ? '<invalid>' : value
  }
}

/** Go writes the members of a map in the order of their names. */
function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted)
  if (typeof value !== 'object' || value === null) return value
  const object = value as Record<string, unknown>
  return Object.fromEntries(
    Object.keys(object)
      .sort()
      .map((key) => [key, sorted(object[key])]),
  )
}
