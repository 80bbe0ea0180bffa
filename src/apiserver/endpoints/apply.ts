/**
 * Server-side apply (L3): the endpoint's part; merging and ownership are api/managedFields.
 * Upstream: handlers/patch.go applyPatcher.
 */
import type { KubeObject } from '#api/machinery/meta'
import { badRequest } from '#api/machinery/status'
import { apply, applySteps } from '#api/managedFields/apply'
import { serverMetadata } from '#api/managedFields/compareObjects'
import type { OtherVersions } from '#api/managedFields/versions'
import { strictProblems } from '#api/schema/decode'
import { append } from '#base/extremes'
import { deepCopy, deepCopyInSteps } from '#base/frozen'
import { checkKind, decodeExpected, decodeValue, type ExpectedKind, fieldValidationOf, parseBody, yamlType } from '../core/body.ts'
import { inSteps, isLargeObject, turn } from '../core/fairLoop.ts'
import type { RequestBody } from '../core/request.ts'
import { truthy } from '../core/requestInfo.ts'
import { withConvertedVersions } from '../registry/convertedVersions.ts'
import { expectedKind } from '../registry/expectedKind.ts'
import { resetFields } from '../registry/managers.ts'
import { type UpdateResult, updateObject } from '../registry/update.ts'
import { invalidOption, type Scope, writeContext } from './scope.ts'

/** The applied object, decoded but not defaulted: the manager does not own fields that it leaves out. */
export interface Configuration {
  readonly applied: KubeObject
  /** Unknown fields that apply must refuse: empty when the client asked to ignore them. */
  readonly unknownFields: readonly string[]
}

/** @throws Status Invalid without a field manager, BadRequest for a body that is no object of the expected kind. */
export function readConfiguration(scope: Scope, body: RequestBody, expected: ExpectedKind): Configuration {
  return configurationOf(scope, parseConfiguration(scope, body), expected)
}

function parseConfiguration({ request }: Scope, body: RequestBody): unknown {
  if (!request.query.get('fieldManager')) {
    throw invalidOption('PatchOptions', 'fieldManager', 'FieldValueRequired', 'Required value: is required for apply patch')
  }
  // YAML contains JSON, so one parser reads what clients send as either.
  return parseBody(body.type === 'value' ? body : { ...body, contentType: yamlType }, true).value
}

function configurationOf({ request, info, served }: Scope, value: unknown, expected: ExpectedKind): Configuration {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) throw badRequest('error decoding YAML: the configuration must be an object')
  checkKind(value as Partial<KubeObject>, expected)
  const { object, unknownFields } = decodeExpected(value, expected, { unknown: 'collect', absent: 'keep' })
  const applied = object as unknown as KubeObject
  applied.metadata ??= {}
  for (const [name, member] of Object.entries(applied.metadata)) {
    // A null in a field that the server sets is no claim of ownership: nearly every client sends creationTimestamp as null.
    if (member === null && serverMetadata.has(name)) delete (applied.metadata as Record<string, unknown>)[name]
  }
  if (served.namespaced) applied.metadata.namespace ||= info.namespace
  const validation = fieldValidationOf(request)
  if (validation === 'Warn') append(request.warnings, strictProblems(unknownFields, []))
  return { applied, unknownFields: validation === 'Ignore' ? [] : unknownFields }
}

export async function applyConfiguration(scope: Scope, body: RequestBody): Promise<UpdateResult> {
  const { deps, request, info, served } = scope
  const expected = expectedKind(served)
  const value = parseConfiguration(scope, body)
  const isLargeBody = isLargeObject(request.bodyBytes ?? 0)
  if (isLargeBody) await turn()
  const { applied, unknownFields } = configurationOf(scope, value, expected)
  const context = { ...writeContext(scope, 'PatchOptions'), managedFieldsDone: true }
  return updateObject(deps.writer, context, {
    name: info.name,
    forceAllowCreate: true,
    transform: async (current, isLarge = isLargeBody) => {
      const inputWith = (otherVersion: OtherVersions | undefined) => ({
        live: current,
        applied,
        schema: served.schema,
        manager: context.fieldManager,
        apiVersion: served.apiVersion,
        subresource: info.subresource,
        resetFields: resetFields(context),
        force: truthy(request.query.get('force')),
        nowMs: deps.clock.now(),
        unknownFields,
        otherVersion,
      })
      const { foreignConversion } = served
      const merged = foreignConversion
        ? await withConvertedVersions(foreignConversion, served.apiVersion, (otherVersion) => apply(inputWith(otherVersion)))
        : isLarge
          ? await inSteps(applySteps(inputWith(served.otherVersion)), true)
          : apply(inputWith(served.otherVersion))
      if (isLarge) await turn()
      const copy = isLarge ? await inSteps(deepCopyInSteps<KubeObject>(merged), true) : deepCopy<KubeObject>(merged)
      if (isLarge) await turn()
      if (current && applied.metadata.resourceVersion) copy.metadata.resourceVersion = applied.metadata.resourceVersion
      return decodeValue(request, { value: copy, duplicates: [] }, expected, 'Ignore')
    },
  })
}
