/** Authentication's contract (L3): the first authenticator that recognises a credential decides; one that finds none of its kind abstains. */
import type { ServerRequest, UserInfo } from '../core/request.ts'

export type AuthenticationResult =
  | { readonly decision: 'authenticated'; readonly user: UserInfo; readonly audiences?: readonly string[] | undefined }
  /** The request has an invalid credential of this kind: no later authenticator may accept it as anonymous. */
  | { readonly decision: 'rejected'; readonly reason: string }
  | undefined

export interface Authenticator {
  readonly name: string
  authenticate(request: ServerRequest): Promise<AuthenticationResult> | AuthenticationResult
}
