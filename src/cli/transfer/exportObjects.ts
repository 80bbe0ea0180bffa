/** Reads the objects of a cluster at one revision for an export (L4). */
import { isStatus } from '#api/machinery/status'
import { messageOf } from '#base/messageOf'
import { namespaces } from '#client/builtIn'
import { createClient } from '#client/clientOverTransport'
import type { Transport } from '#client/transport'
import { CommandError } from '../exitCodes.ts'
import type { Draft } from '../past/forkPlan.ts'
import { discoverKinds, isUnlistable, kindNamed, nameOf, objectsAt } from '../past/objects.ts'
import { type ExportChoice, exportedOf, isChosen, kindsToExport, reasonToLeaveOut } from './exportPlan.ts'

export interface ExportReport {
  readonly revision: number
  readonly exported: number
  /** Numbers of objects, by reason. */
  readonly left: ReadonlyMap<string, number>
  /** Kinds that the server does not store, or does not list. */
  readonly unlistable: readonly string[]
  /** One line each: a kind or a group version that the export lacks, in whole or in part, because its server refused or did not answer. */
  readonly failed: readonly string[]
}

export interface ExportOptions {
  readonly namespaces: readonly string[]
  /** Names of kinds, as users write them. */
  readonly included: readonly string[]
}

/**
 * @param write is waited for after each object.
 * @throws CommandError usage for a kind that the cluster does not have, notFound for a namespace
 */
export async function exportObjects(transport: Transport, options: ExportOptions, write: (object: Draft) => Promise<void>): Promise<ExportReport> {
  const { kinds, failed: silent } = await discoverKinds(transport)
  const included = new Set(options.included.map((name) => nameOf(kindNamed(kinds, name))))
  const choice: ExportChoice = { namespaces: new Set(options.namespaces), included }
  const revision = await newestRevision(transport)
  for (const name of choice.namespaces) await refuseMissing(transport, name)
  const left = new Map<string, number>()
  const unlistable: string[] = []
  const failed = [...silent].map(([groupVersion, { message }]) => `${groupVersion}: ${message}`)
  let exported = 0
  for (const kind of kindsToExport(kinds, choice)) {
    try {
      for await (const object of objectsAt(transport, kind, revision)) {
        if (!isChosen(choice, kind, object)) continue
        const reason = reasonToLeaveOut(choice, kind, object)
        if (reason === undefined) {
          await write(exportedOf(kind, object))
          exported++
        } else left.set(reason, (left.get(reason) ?? 0) + 1)
      }
    } catch (error) {
      if (isUnlistable(error)) unlistable.push(nameOf(kind))
      // The revision is no longer kept: no kind can be read at it.
      else if (!isStatus(error) || isStatus(error, 'Expired')) throw error
      else failed.push(`${nameOf(kind)}: ${messageOf(error)}`)
    }
  }
  return { revision, exported, left, unlistable, failed }
}

async function newestRevision(transport: Transport): Promise<number> {
  const { metadata } = await createClient(transport).of(namespaces).list({ limit: 1 })
  return Number(metadata.resourceVersion)
}

async function refuseMissing(transport: Transport, name: string): Promise<void> {
  await createClient(transport)
    .of(namespaces)
    .get({ name })
    .catch((error: unknown) => {
      throw isStatus(error, 'NotFound') ? new CommandError('notFound', `the cluster has no namespace "${name}"`) : error
    })
}
