/** Reads the objects of a cluster at one revision for an export (L4). */
import { createClient } from '#client/clientOverTransport'
import type { Transport } from '#client/transport'
import { readable } from '../past/fork.ts'
import type { Draft } from '../past/forkPlan.ts'
import { kindNamed, listableKinds, nameOf } from '../past/objects.ts'
import { type ExportChoice, exportedOf, isChosen, kindsToExport, reasonToLeaveOut } from './exportPlan.ts'

export interface ExportReport {
  readonly revision: number
  readonly exported: number
  /** Numbers of objects, by reason. */
  readonly left: ReadonlyMap<string, number>
  /** Kinds that the server does not store, or does not list. */
  readonly unreadable: readonly string[]
}

export interface ExportOptions {
  readonly namespaces: readonly string[]
  /** Names of kinds, as users write them. */
  readonly included: readonly string[]
}

/** @param write is waited for after each object. @throws CommandError usage for a kind that the cluster does not have */
export async function exportObjects(transport: Transport, options: ExportOptions, write: (object: Draft) => Promise<void>): Promise<ExportReport> {
  const kinds = await listableKinds(transport)
  const included = new Set(options.included.map((name) => nameOf(kindNamed(kinds, name))))
  const choice: ExportChoice = { namespaces: new Set(options.namespaces), included }
  const revision = await newestRevision(transport)
  const left = new Map<string, number>()
  const unreadable: string[] = []
  let exported = 0
  for (const kind of kindsToExport(kinds, choice)) {
    for await (const object of readable({ transport, revision, explain: (error) => error }, kind, unreadable)) {
      if (!isChosen(choice, kind, object)) continue
      const reason = reasonToLeaveOut(choice, kind, object)
      if (reason === undefined) {
        await write(exportedOf(kind, object))
        exported++
      } else left.set(reason, (left.get(reason) ?? 0) + 1)
    }
  }
  return { revision, exported, left, unreadable }
}

async function newestRevision(transport: Transport): Promise<number> {
  const namespaces = { group: '', version: 'v1', resource: 'namespaces', kind: 'Namespace', namespaced: false } as const
  const { metadata } = await createClient(transport).of(namespaces).list({ limit: 1 })
  return Number(metadata.resourceVersion)
}
