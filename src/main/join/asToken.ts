/** Asks a cluster with a bootstrap token (L5). */
import { isStatus } from '#api/machinery/status'
import type { Clock } from '#base/clock'
import { messageOf } from '#base/messageOf'
import type { BootstrapToken } from '#cli/bootstrapToken'
import { CommandError } from '#cli/exitCodes'
import type { Client } from '#client/client'
import { createClient } from '#client/clientOverTransport'
import { createHttpTransport } from '#client/httpTransport'
import type { TrustedCluster } from './verifyClusterInfo.ts'

/**
 * What `get` answers; undefined when the cluster does not have it, or does not show it.
 * @throws CommandError when the token does not authenticate, or the cluster does not answer
 */
export async function askAsToken<T>(
  { server, ca }: TrustedCluster,
  { id, secret }: BootstrapToken,
  clock: Clock,
  get: (client: Client) => Promise<T>,
): Promise<T | undefined> {
  const transport = createHttpTransport({ server, clock, tls: { ca }, bearerToken: `${id}.${secret}`, requestTimeoutMs: 10_000 })
  try {
    return await get(createClient(transport))
  } catch (error) {
    if (isStatus(error, 'NotFound') || isStatus(error, 'Forbidden')) return undefined
    if (isStatus(error, 'Unauthorized')) {
      throw new CommandError('notFound', `the cluster does not accept token "${id}" any more, or not for joining`, {
        hint: 'make a new one: skiff token create',
        cause: error,
      })
    }
    throw new CommandError('timeout', `${server}, which the cluster names as its address, does not answer: ${messageOf(error)}`, {
      hint: 'this machine must reach that address',
      cause: error,
    })
  } finally {
    await transport.close()
  }
}
