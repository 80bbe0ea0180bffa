/**
 * Issues tokens for service accounts (L3), for the TokenRequest endpoint. A token may be bound to a pod, a node or a secret, and is invalid after the
 * deletion of that object.
 * Upstream: pkg/registry/core/serviceaccount/storage/token.go, pkg/serviceaccount/claims.go (v1.36).
 */
import { randomUUID } from 'node:crypto'
import type { TokenRequest } from '#api/gen/types/authentication.v1'
import type { Node, Pod } from '#api/gen/types/core.v1'
import { FieldPath, fieldError, invalid } from '#api/machinery/fieldPath'
import type { Frozen, KubeObject } from '#api/machinery/meta'
import { badRequest, conflict, notFound, StatusError } from '#api/machinery/status'
import type { Clock } from '#base/clock'
import { formatTime } from '#base/time'
import type { TokenIssuer } from '../core/computedResource.ts'
import type { ObjectReader } from '../core/objectReader.ts'
import { type BoundReference, signToken } from './jwt.ts'
import type { SigningKey } from './keys.ts'

/** Makes a token of claims. */
export interface TokenSigner {
  sign(claims: object): Promise<string> | string
}

export function keySigner(key: SigningKey): TokenSigner {
  return { sign: (claims) => signToken(claims, key) }
}

export interface TokenIssuerOptions {
  readonly reader: ObjectReader
  readonly clock: Clock
  readonly signer: TokenSigner
  readonly issuer: string
  /** The API server's own audiences: the default. Only tokens for these are extended to a year. */
  readonly audiences: readonly string[]
  /** Longer requests are shortened to this; absent: no bound. */
  readonly maxExpirationSeconds?: number | undefined
  /** Whether the kubelet's tokens for injected volumes are valid for a year, or the signer's maximum. */
  readonly extendExpiration: boolean
  /** The signer's maximum lifetime of a token; absent: no maximum. */
  readonly signerMaxExpirationSeconds?: number | undefined
}

const minExpirationSeconds = 600
const maxExpirationSeconds = 2 ** 32
const defaultExpirationSeconds = 3600
/** The lifetime that the kubelet requests for an injected volume. Old clients never reload tokens, so the token is valid for a year and warns. */
const warnOnlyExpirationSeconds = 3607
const extendedExpirationSeconds = 365 * 24 * 3600

type Request = Parameters<TokenIssuer['issue']>[0]

export function createTokenIssuer(options: TokenIssuerOptions): TokenIssuer {
  const { signerMaxExpirationSeconds: signerSeconds = Number.POSITIVE_INFINITY } = options
  const longestSeconds = Math.min(options.maxExpirationSeconds ?? Number.POSITIVE_INFINITY, signerSeconds)
  const extendedSeconds = Math.min(extendedExpirationSeconds, signerSeconds)
  return {
    async issue(request) {
      const { tokenRequest, namespace, name, serviceAccountUid } = request
      const { spec } = tokenRequest
      const wanted = validated(tokenRequest)
      const bound = boundTo(options.reader, request)
      const audiences = spec.audiences?.length ? spec.audiences : options.audiences
      const asked = Math.min(wanted, longestSeconds)
      if (asked < wanted) request.warn(`requested expiration of ${wanted} seconds shortened to ${asked} seconds`)
      const isOurs = audiences.every((one) => options.audiences.includes(one))
      const extended = options.extendExpiration && asked === warnOnlyExpirationSeconds && bound.pod !== undefined && isOurs
      const now = Math.floor(options.clock.now() / 1000)
      const claims = {
        aud: audiences,
        exp: now + (extended ? extendedSeconds : asked),
        iat: now,
        iss: options.issuer,
        jti: randomUUID(),
        'kubernetes.io': { namespace, ...bound, serviceaccount: { name, uid: serviceAccountUid }, ...(extended ? { warnafter: now + asked } : {}) },
        nbf: now,
        sub: `system:serviceaccount:${namespace}:${name}`,
      }
      // Named as upstream: the kubelet refreshes by this time, which can be earlier than the token's own expiry.
      const status = { token: await signed(options.signer, claims), expirationTimestamp: formatTime((now + asked) * 1000) }
      request.annotate('authentication.kubernetes.io/issued-credential-id', `JTI=${claims.jti}`)
      const metadata = { ...tokenRequest.metadata, creationTimestamp: formatTime(now * 1000) }
      return { ...tokenRequest, metadata, spec: { ...spec, audiences: [...audiences], expirationSeconds: asked }, status }
    },
  }
}

/** @throws Status 500 without a reason, as upstream's */
async function signed(signer: TokenSigner, claims: object): Promise<string> {
  try {
    return await signer.sign(claims)
  } catch (error) {
    throw new StatusError('', `failed to generate token: ${(error as Error).message}`, { code: 500, cause: error })
  }
}

/** The requested lifetime in seconds. @throws Status Invalid. */
function validated({ spec }: TokenRequest): number {
  const seconds = spec.expirationSeconds ?? defaultExpirationSeconds
  const path = FieldPath.of('spec', 'expirationSeconds')
  const fault =
    seconds < minExpirationSeconds
      ? 'may not specify a duration less than 10 minutes'
      : seconds > maxExpirationSeconds
        ? 'may not specify a duration larger than 2^32 seconds'
        : undefined
  if (fault) throw invalid({ group: 'authentication.k8s.io', kind: 'TokenRequest' }, '', [fieldError.invalid(path, seconds, fault)])
  return seconds
}

function boundTo(reader: ObjectReader, { namespace, name, tokenRequest }: Request): { pod?: BoundReference; node?: BoundReference; secret?: BoundReference } {
  const ref = tokenRequest.spec.boundObjectRef
  if (!ref) return {}
  const { apiVersion = '', name: boundName = '', uid = '' } = ref
  const isCore = !apiVersion.includes('/')
  const kind = isCore ? ref.kind : undefined
  const find = <T extends KubeObject>(resource: string, inNamespace: string): { object: Frozen<T>; bound: BoundReference } => {
    const object = reader.get<T>({ group: '', resource }, inNamespace, boundName)
    if (!object) throw notFound({ group: '', resource }, boundName)
    const actual = object.metadata.uid ?? ''
    if (uid !== '' && uid !== actual) {
      const why = `the UID in the bound object reference (${uid}) does not match the UID in record. The object might have been deleted and then recreated`
      throw conflict({ group: '', resource }, boundName, why)
    }
    return { object, bound: { name: boundName, uid: actual } }
  }
  if (kind === 'Pod') {
    const { object: pod, bound } = find<Pod>('pods', namespace)
    if (pod.spec?.serviceAccountName !== name) {
      throw badRequest(`cannot bind token for serviceaccount ${JSON.stringify(name)} to pod running with different serviceaccount name.`)
    }
    const nodeName = pod.spec.nodeName
    if (!nodeName) return { pod: bound }
    const node = reader.get<Node>({ group: '', resource: 'nodes' }, '', nodeName)
    return { pod: bound, node: { name: nodeName, uid: node?.metadata.uid ?? '' } }
  }
  if (kind === 'Node') return { node: find('nodes', '').bound }
  if (kind === 'Secret') return { secret: find('secrets', namespace).bound }
  throw badRequest(`cannot bind token to object of type ${isCore ? '/' : ''}${apiVersion}, Kind=${ref.kind ?? ''}`)
}
