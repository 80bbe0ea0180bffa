/**
 * The options of a deletion (L3): from the body where there is one, else from the query, and whether they fit together.
 * Upstream: handlers/delete.go and ValidateDeleteOptions of apimachinery/pkg/apis/meta/v1/validation (v1.36).
 */
import { badRequest } from '#api/machinery/status'
import { schemaOfDefinition } from '#api/schema/builtIn'
import { decodeValue, maxBodyBytes, parseBody, readyBody } from '../core/body.ts'
import type { ParsedBody } from '../core/request.ts'
import { truthy } from '../core/requestInfo.ts'
import type { DeleteRequest } from '../registry/deletion.ts'
import { invalidOption, type Scope } from './scope.ts'
import { wholeNumber } from './selectors.ts'

export interface DeleteOptionsBody {
  gracePeriodSeconds?: number | undefined
  propagationPolicy?: string | undefined
  orphanDependents?: boolean | undefined
  preconditions?: { uid?: string | undefined; resourceVersion?: string | undefined } | undefined
  dryRun?: string[] | undefined
  ignoreStoreReadErrorWithClusterBreakingPotential?: boolean | undefined
}

export async function deleteOptions(scope: Scope): Promise<{ options: DeleteOptionsBody; request: Omit<DeleteRequest, 'name'> }> {
  const { request } = scope
  const parsed = parseBody(await readyBody(scope, await request.readBody(maxBodyBytes)), false)
  const options = parsed.value === undefined || parsed.value === null ? optionsOfQuery(request.query) : decodeOptions(scope, parsed)
  if (typeof parsed.value === 'object' && parsed.value !== null) request.audit?.requestObject(parsed.value)
  if (request.query.has('dryRun') && !options.dryRun?.length) options.dryRun = request.query.getAll('dryRun')
  // Upstream ignores the option while the gate is off.
  if (!scope.deps.unsafeDeletion) delete options[ignoreReadError]
  checkUnsafe(options)
  return { options, request: checkedDeletion(options) }
}

const ignoreReadError = 'ignoreStoreReadErrorWithClusterBreakingPotential'
const excludedByUnsafe = ['dryRun', 'propagationPolicy', 'orphanDependents', 'gracePeriodSeconds', 'preconditions'] as const

/** Refuses the unsafe option when a collection is deleted. @throws Status Invalid */
export function refuseUnsafe(options: DeleteOptionsBody): void {
  if (!options[ignoreReadError]) return
  throw invalidOption(
    'DeleteOptions',
    ignoreReadError,
    'FieldValueInvalid',
    'Invalid value: true: is not allowed with DELETECOLLECTION, try again after removing the option',
  )
}

/** @throws Status Invalid */
function checkUnsafe(options: DeleteOptionsBody): void {
  if (!options[ignoreReadError]) return
  for (const other of excludedByUnsafe) {
    const value = options[other]
    if (value === undefined || (Array.isArray(value) && value.length === 0)) continue
    throw invalidOption('DeleteOptions', ignoreReadError, 'FieldValueInvalid', `Invalid value: true: cannot be set together with .${other}`)
  }
}

/** @throws Status Invalid */
export function checkedDeletion(options: DeleteOptionsBody): Omit<DeleteRequest, 'name'> {
  const { gracePeriodSeconds, propagationPolicy, orphanDependents, preconditions } = options
  if (propagationPolicy !== undefined && !isPropagationPolicy(propagationPolicy)) {
    const body = `Unsupported value: ${JSON.stringify(propagationPolicy)}: supported values: "Foreground", "Background", "Orphan", "nil"`
    throw invalidOption('DeleteOptions', 'propagationPolicy', 'FieldValueNotSupported', body)
  }
  if (propagationPolicy !== undefined && orphanDependents !== undefined) {
    const body = `Invalid value: ${JSON.stringify(propagationPolicy)}: orphanDependents and deletionPropagation cannot be both set`
    throw invalidOption('DeleteOptions', 'propagationPolicy', 'FieldValueInvalid', body)
  }
  // A negative period counts as one second, as upstream.
  const grace = gracePeriodSeconds !== undefined && gracePeriodSeconds < 0 ? 1 : gracePeriodSeconds
  return { gracePeriodSeconds: grace, propagationPolicy, orphanDependents, preconditions, options: { ...options } }
}

function isPropagationPolicy(text: string): text is 'Orphan' | 'Background' | 'Foreground' {
  return text === 'Orphan' || text === 'Background' || text === 'Foreground'
}

function decodeOptions(scope: Scope, parsed: ParsedBody): DeleteOptionsBody {
  const value = parsed.value as { apiVersion?: string; kind?: string }
  // DeleteOptions exists in every group-version; clients send the group's, v1 or meta.k8s.io/v1.
  if (typeof value === 'object' && value.kind !== undefined && value.kind !== 'DeleteOptions') {
    throw badRequest(`expected DeleteOptions, got ${value.kind}`)
  }
  const expected = { group: '', version: 'v1', kind: 'DeleteOptions', schema: schemaOfDefinition('io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions') }
  return decodeValue(scope.request, { value: { ...value, apiVersion: 'v1' }, duplicates: parsed.duplicates }, expected, 'Ignore') as DeleteOptionsBody
}

function optionsOfQuery(query: URLSearchParams): DeleteOptionsBody {
  const grace = query.get('gracePeriodSeconds')
  const policy = query.get('propagationPolicy')
  const orphan = query.get('orphanDependents')
  const ignore = query.get(ignoreReadError)
  return {
    ...(grace === null ? {} : { gracePeriodSeconds: wholeNumber(grace) }),
    ...(policy === null ? {} : { propagationPolicy: policy }),
    ...(orphan === null ? {} : { orphanDependents: truthy(orphan) }),
    ...(ignore === null ? {} : { [ignoreReadError]: truthy(ignore) }),
  }
}
