/** What `skiff bundle` asks for (L4). main/bundle implements it: commands know flags and files, it knows stores and API servers. */
import type { BundleIndex } from './bundle/format.ts'
import type { Kind, PastObject } from './past/objects.ts'

export interface StateFacts {
  readonly revision: number
  readonly oldestRevision: number
}

/** Takes the objects of a cluster in any order, and writes them as etcd's snapshot. */
/** Disposing of it closes the files that it holds open. */
export interface ObjectFile extends AsyncDisposable {
  /** A version of an object; versions of one object come in order. */
  add(kind: Kind, object: PastObject): Promise<void>
  /** @param object of which the name is known, and the revision that deleted it */
  remove(kind: Kind, object: PastObject): void
  /** Objects that are there after all versions that were added. */
  readonly count: number
  /** Writes the file. @returns its path */
  end(facts: StateFacts): Promise<string>
}

/** A read-only API server on localhost over a state that does not change. */
export interface StillServer {
  readonly url: string
  readonly token: string
  /** PEM. */
  readonly ca: string
  close(): Promise<void>
}

export interface Bundles {
  objectFile(directory: string): Promise<ObjectFile>
  /** Serves a bundle. @throws CommandError when it is damaged */
  serve(file: string): Promise<StillServer & { readonly index: BundleIndex }>
  /** Serves the store of a local cluster that is stopped. @throws CommandError */
  serveStopped(name: string): Promise<StillServer>
}
