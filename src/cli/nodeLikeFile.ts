/** Reads the file of `--like` (L4). */
import fs from 'node:fs/promises'
import { messageOf } from '#base/messageOf'
import { CommandError } from './exitCodes.ts'
import { type NodeLike, readNodeLike } from './nodeLike.ts'

/** Without a file, nodes are as those of `up`. @throws CommandError when it cannot be read, or is no Node */
export async function nodeLikeOf(file: string | undefined): Promise<NodeLike> {
  if (file === undefined) return {}
  const text = await fs.readFile(file, 'utf8').catch((error) => {
    throw new CommandError('notFound', `--like ${file}: ${messageOf(error)}`)
  })
  return readNodeLike(file, text)
}
