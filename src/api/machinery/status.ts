/**
 * The one catalogue of errors that leave the server (L1): each is a metav1.Status with upstream's code, reason, message and causes.
 * Callers test the reason, never the text. Upstream: apimachinery/pkg/api/errors (v1.36).
 */
import { messageOf } from '#base/messageOf'
import type { GroupResource } from './meta.ts'

/** metav1.StatusReason to HTTP code. */
const statusCodes = {
  Unauthorized: 401,
  Forbidden: 403,
  NotFound: 404,
  AlreadyExists: 409,
  Conflict: 409,
  Gone: 410,
  Invalid: 422,
  ServerTimeout: 500,
  StoreReadError: 500,
  Timeout: 504,
  TooManyRequests: 429,
  BadRequest: 400,
  MethodNotAllowed: 405,
  NotAcceptable: 406,
  RequestEntityTooLarge: 413,
  UnsupportedMediaType: 415,
  InternalError: 500,
  Expired: 410,
  ServiceUnavailable: 503,
  '': 500,
} as const

export type StatusReason = keyof typeof statusCodes

export interface StatusCause {
  /** metav1.CauseType: FieldValueInvalid, FieldManagerConflict, … */
  reason?: string
  message?: string
  field?: string
}

export interface StatusDetails {
  name?: string
  group?: string
  kind?: string
  uid?: string
  causes?: StatusCause[]
  retryAfterSeconds?: number
}

/** The wire form. */
export interface Status {
  kind: 'Status'
  apiVersion: 'v1'
  metadata: Record<string, unknown>
  status: 'Success' | 'Failure'
  message?: string
  reason?: StatusReason
  details?: StatusDetails
  code: number
}

/** A failure that travels as a Status: thrown by the server's stages and by every client call that the server refused. */
export class StatusError extends Error {
  readonly reason: StatusReason
  readonly code: number
  readonly details: StatusDetails | undefined
  /** The token with which a list can continue after this failure: the Status's metadata.continue. */
  readonly continue: string | undefined

  constructor(reason: StatusReason, message: string, options: { code?: number; details?: StatusDetails; continue?: string; cause?: unknown } = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause })
    this.name = 'StatusError'
    this.reason = reason
    this.code = options.code ?? statusCodes[reason] ?? 500
    this.details = options.details
    this.continue = options.continue
  }

  hasCause(reason: string): boolean {
    return this.details?.causes?.some((cause) => cause.reason === reason) ?? false
  }

  toStatus(): Status {
    return {
      kind: 'Status',
      apiVersion: 'v1',
      metadata: this.continue === undefined ? {} : { continue: this.continue },
      status: 'Failure',
      message: this.message,
      ...(this.reason === '' ? {} : { reason: this.reason }),
      ...(this.details ? { details: this.details } : {}),
      code: this.code,
    }
  }

  static fromStatus(status: Partial<Status>, httpCode: number): StatusError {
    return new StatusError(status.reason ?? '', status.message ?? `the server answered ${httpCode}`, {
      code: status.code ?? httpCode,
      ...(status.details ? { details: status.details } : {}),
      ...(typeof status.metadata?.continue === 'string' ? { continue: status.metadata.continue } : {}),
    })
  }
}

/** True when `error` is a Status failure, of the given reason if one is named. */
export function isStatus(error: unknown, reason?: StatusReason): error is StatusError {
  return error instanceof StatusError && (reason === undefined || error.reason === reason)
}

const qualified = (resource: GroupResource) => (resource.group ? `${resource.resource}.${resource.group}` : resource.resource)
/** Upstream keeps the resource's name in details.kind for errors that know only the resource. */
const detailsOf = (resource: GroupResource, name: string): StatusDetails => ({
  name,
  ...(resource.group ? { group: resource.group } : {}),
  kind: resource.resource,
})

export function notFound(resource: GroupResource, name: string): StatusError {
  return new StatusError('NotFound', `${qualified(resource)} "${name}" not found`, { details: detailsOf(resource, name) })
}

export function alreadyExists(resource: GroupResource, name: string): StatusError {
  return new StatusError('AlreadyExists', `${qualified(resource)} "${name}" already exists`, { details: detailsOf(resource, name) })
}

export function conflict(resource: GroupResource, name: string, why: string): StatusError {
  return new StatusError('Conflict', `Operation cannot be fulfilled on ${qualified(resource)} "${name}": ${why}`, { details: detailsOf(resource, name) })
}

/** The text that every optimistic-lock failure carries (apiserver/pkg/registry/generic/registry/store.go). */
export const optimisticLockMessage = 'the object has been modified; please apply your changes to the latest version and try again'

export function forbidden(resource: GroupResource, name: string, why: string): StatusError {
  const subject = resource.resource ? (name ? `${qualified(resource)} "${name}" is forbidden: ` : `${qualified(resource)} is forbidden: `) : 'forbidden: '
  return new StatusError('Forbidden', `${subject}${why}`, { details: detailsOf(resource, name) })
}

export function badRequest(message: string): StatusError {
  return new StatusError('BadRequest', message)
}

export function unauthorized(message = 'Unauthorized'): StatusError {
  return new StatusError('Unauthorized', message)
}

export function expired(message: string): StatusError {
  return new StatusError('Expired', message)
}

export function tooManyRequests(message: string, retryAfterSeconds: number): StatusError {
  return new StatusError('TooManyRequests', message, { details: { retryAfterSeconds } })
}

export function internalError(error: unknown): StatusError {
  const message = messageOf(error)
  return new StatusError('InternalError', `Internal error occurred: ${message}`, { details: { causes: [{ message }] }, cause: error })
}
