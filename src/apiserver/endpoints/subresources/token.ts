/** serviceaccounts/token (L3): the TokenRequest endpoint; the token itself is made by the injected issuer. */
import type { TokenRequest } from '#api/gen/types/authentication.v1'
import type { KubeObject } from '#api/machinery/meta'
import { badRequest, notFound, StatusError } from '#api/machinery/status'
import { schemaFor } from '#api/schema/builtIn'
import type { Answer } from '../../answer.ts'
import { admit, validateAdmission } from '../../registry/admit.ts'
import type { UserInfo } from '../../request.ts'
import { decodeBody } from '../body.ts'
import { type Scope, writeContext } from '../scope.ts'
import type { TokenIssuer } from '../virtualResource.ts'

export function tokenHandlers(issuer: TokenIssuer | undefined): { create(scope: Scope): Promise<Answer> } {
  return {
    async create(scope) {
      const { deps, request, info } = scope
      const schema = schemaFor('authentication.k8s.io', 'v1', 'TokenRequest')
      if (!schema) throw new Error('no schema for TokenRequest')
      const body: KubeObject & { spec?: object } = await decodeBody(scope, { group: 'authentication.k8s.io', version: 'v1', kind: 'TokenRequest', schema })
      body.spec ??= {}
      if (!issuer) throw new StatusError('MethodNotAllowed', 'the server issues no service account tokens')
      if (body.metadata.name && body.metadata.name !== info.name) {
        throw badRequest(`the service account name in the TokenRequest (${body.metadata.name}) does not match the name on the URL (${info.name})`)
      }
      const account = deps.registry.reader.get({ group: '', resource: 'serviceaccounts' }, info.namespace, info.name)
      if (!account) throw notFound({ group: '', resource: 'serviceaccounts' }, info.name)
      body.metadata = { ...body.metadata, name: info.name, namespace: info.namespace }
      const user = request.user as UserInfo
      const { dryRun } = writeContext(scope, 'CreateOptions')
      // NodeRestriction looks at what a kubelet's token is bound to.
      const attributes = {
        operation: 'CREATE' as const,
        resource: { group: '', version: 'v1', resource: 'serviceaccounts' },
        subresource: 'token',
        kind: { group: 'authentication.k8s.io', version: 'v1', kind: 'TokenRequest' },
        namespace: info.namespace,
        name: info.name,
        object: body,
        user,
        dryRun,
        warn: (text: string) => request.warnings.push(text),
      }
      await admit(deps.writer.admission, attributes)
      await validateAdmission(deps.writer.admission, attributes)
      const value = await issuer.issue({
        namespace: info.namespace,
        name: info.name,
        serviceAccountUid: account.metadata.uid ?? '',
        tokenRequest: body as unknown as TokenRequest,
        user,
        dryRun,
      })
      return { type: 'value', status: 201, value }
    },
  }
}
