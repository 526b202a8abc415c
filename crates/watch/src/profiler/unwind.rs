//! Unwinds stacks of programs without frame pointers, by their unwind tables (`.eh_frame`) and a
//! copy of the stack.

use std::collections::HashSet;

use super::perf::UserStack;
use super::processes::image::Images;
use super::processes::maps::{Backing, Memory};

#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
mod native {
    use std::sync::Arc;

    use framehop::{
        CacheNative, ExplicitModuleSectionInfo, FrameAddress, MayAllocateDuringUnwind, Module,
        UnwindRegsNative, Unwinder, UnwinderNative,
    };

    use super::{Backing, HashSet, Images, Memory, UserStack};

    /// Maximum number of frames in a stack.
    const FRAMES_MAX: usize = 128;

    /// The unwind tables of a process that were needed so far.
    #[derive(Default)]
    pub(crate) struct Unwinding {
        unwinder: UnwinderNative<Arc<[u8]>, MayAllocateDuringUnwind>,
        loaded: HashSet<u64>,
    }

    /// Cached unwind rules, shared by all processes.
    #[derive(Default)]
    pub(crate) struct Rules(CacheNative<MayAllocateDuringUnwind>);

    #[cfg(target_arch = "x86_64")]
    fn registers(stack: &UserStack) -> (u64, u64, UnwindRegsNative) {
        let [bp, sp, ip] = stack.registers;
        (ip, sp, UnwindRegsNative::new(ip, sp, bp))
    }

    #[cfg(target_arch = "aarch64")]
    fn registers(stack: &UserStack) -> (u64, u64, UnwindRegsNative) {
        let [fp, lr, sp, pc] = stack.registers;
        (pc, sp, UnwindRegsNative::new(lr, sp, fp))
    }

    impl Unwinding {
        /// The addresses of the stack, innermost first; those of callers lie within the call
        /// instruction.
        pub(crate) fn unwind(
            &mut self,
            rules: &mut Rules,
            memory: &Memory,
            images: &mut Images,
            stack: &UserStack,
        ) -> Vec<u64> {
            let (ip, sp, mut registers) = registers(stack);
            let mut read = |address: u64| {
                let at =
                    address.checked_sub(sp).and_then(|at| usize::try_from(at).ok()).ok_or(())?;
                let bytes = stack.bytes.get(at..).and_then(|rest| rest.first_chunk()).ok_or(())?;
                Ok(u64::from_ne_bytes(*bytes))
            };
            let mut frame = FrameAddress::from_instruction_pointer(ip);
            let mut addresses = Vec::new();
            loop {
                let address = frame.address_for_lookup();
                if !self.load(address, memory, images) && !addresses.is_empty() {
                    break; // The caller is not code: the rest would be guesses.
                }
                addresses.push(address);
                if addresses.len() >= FRAMES_MAX {
                    break;
                }
                // An error means the end of the copied stack or of the unwind information.
                let next =
                    self.unwinder.unwind_frame(frame, &mut registers, &mut rules.0, &mut read);
                match next.ok().flatten().and_then(FrameAddress::from_return_address) {
                    Some(caller) => frame = caller,
                    None => break,
                }
            }
            addresses
        }

        /// Loads the unwind tables of the code at `address`; false if there is no code.
        fn load(&mut self, address: u64, memory: &Memory, images: &mut Images) -> bool {
            let Some((start, mapping)) = memory.at(address) else { return false };
            let Backing::Image(image) = mapping.backing else { return true };
            if !self.loaded.insert(start) {
                return true;
            }
            let Some(image) = images.get(image) else { return true };
            let Some((layout, stated)) =
                image.layout().and_then(|l| Some((l, l.address_of(mapping.offset)?)))
            else {
                return true;
            };
            let mut info =
                ExplicitModuleSectionInfo { base_svma: 0, ..ExplicitModuleSectionInfo::default() };
            if let Some(section) = &layout.eh_frame {
                info.eh_frame_svma = Some(section.addresses.clone());
                info.eh_frame = Some(Arc::clone(&section.data));
            }
            if let Some(section) = &layout.eh_frame_hdr {
                info.eh_frame_hdr_svma = Some(section.addresses.clone());
                info.eh_frame_hdr = Some(Arc::clone(&section.data));
            }
            // Load address of the file's address 0; wraps for files with high addresses.
            let base = start.wrapping_sub(stated);
            self.unwinder.add_module(Module::new(String::new(), start..mapping.end, base, info));
            true
        }
    }
}

#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
pub(crate) use native::{Rules, Unwinding};

/// On other architectures only frame pointers are used.
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
mod absent {
    use super::{Images, Memory, UserStack};

    #[derive(Default)]
    pub(crate) struct Unwinding;

    #[derive(Default)]
    pub(crate) struct Rules;

    impl Unwinding {
        pub(crate) fn unwind(
            &mut self,
            _: &mut Rules,
            _: &Memory,
            _: &mut Images,
            _: &UserStack,
        ) -> Vec<u64> {
            Vec::new()
        }
    }
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
pub(crate) use absent::{Rules, Unwinding};
