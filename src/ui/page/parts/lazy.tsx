/** Parts that are loaded when they are first shown (L4): the editor and the terminal are larger than the rest of the page together. */
import type { ComponentType } from 'preact'
import { useEffect, useState } from 'preact/hooks'
import { Failure, Loading } from './basics.tsx'

export function lazy<Props extends object>(load: () => Promise<ComponentType<Props>>): ComponentType<Props> {
  let loaded: ComponentType<Props> | undefined
  return function Lazy(props: Props) {
    const [Part, setPart] = useState<ComponentType<Props> | undefined>(() => loaded)
    const [isFailed, setFailed] = useState(false)
    useEffect(() => {
      if (loaded) return
      load().then(
        (part) => {
          loaded = part
          setPart(() => part)
        },
        () => setFailed(true),
      )
    }, [])
    if (isFailed) return <Failure text="This part of the page could not be loaded: is skiff ui still running?" />
    return Part ? <Part {...props} /> : <Loading />
  }
}
