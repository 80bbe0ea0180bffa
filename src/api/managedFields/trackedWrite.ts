/** The input that tracking needs about every write (L1), be it an update or an apply. */
import type { Schema } from '../schema/schema.ts'
import type { OtherVersions } from './versions.ts'

export interface TrackedWrite {
  readonly schema: Schema | undefined
  /** The field manager's name. */
  readonly manager: string
  /** The request's group/version. */
  readonly apiVersion: string
  readonly subresource?: string | undefined
  /** Dotted fields that this endpoint resets, so that no manager comes to own them through it: 'status' on the main resource, 'spec' on …/status. */
  readonly resetFields?: readonly string[] | undefined
  readonly nowMs: number
  /** The resource's other versions; absent: they all have one shape. */
  readonly otherVersion?: OtherVersions | undefined
}
