//! MPI's functions, as safe as a single thread at a time makes them.
//!
//! MPI runs with `MPI_THREAD_SERIALIZED`: one thread may call it at a time. All functions here take the [`Calls`] of a
//! locked mutex.
#![allow(unsafe_code)]

use std::ffi::{c_char, c_int};
use std::mem::MaybeUninit;

use mpi::ffi;
use tpc_runtime::ranks::Tag;

/// Permission to call MPI. There is one, inside a mutex.
#[derive(Debug)]
pub(crate) struct Calls(());

/// A message under way. The memory stays valid until [`Calls::done`] returns true, or [`Calls::cancel`] returns.
#[derive(Debug)]
pub(crate) struct Request(ffi::MPI_Request);

// SAFETY: a request is a handle of MPI, which any thread may use if one thread calls MPI at a time.
unsafe impl Send for Request {}

/// The sender and size of a message that has arrived.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Found {
    pub(crate) from: usize,
    pub(crate) bytes: usize,
}

/// The result of [`Calls::start`].
#[derive(Debug)]
pub(crate) struct Started {
    pub(crate) calls: Calls,
    pub(crate) rank: usize,
    pub(crate) ranks: usize,
    pub(crate) host: String,
}

fn int(n: usize) -> Result<c_int, String> {
    c_int::try_from(n).map_err(|_| format!("{n} bytes are above MPI's limit of 2 GiB per message"))
}

/// Converts a status of MPI. `what` is the function.
fn check(what: &str, status: c_int) -> Result<(), String> {
    if status == 0 {
        return Ok(());
    }
    let mut text = [0 as c_char; 1024];
    let mut len: c_int = 0;
    // SAFETY: the buffer is larger than MPI_MAX_ERROR_STRING.
    unsafe { ffi::MPI_Error_string(status, text.as_mut_ptr(), &raw mut len) };
    let text: Vec<u8> = (text.iter().take(usize::try_from(len).unwrap_or(0)))
        .map(|c| c.cast_unsigned())
        .collect();
    Err(format!("{what}: {}", String::from_utf8_lossy(&text)))
}

const fn world() -> ffi::MPI_Comm {
    // SAFETY: a constant of the library.
    unsafe { ffi::RSMPI_COMM_WORLD }
}

impl Calls {
    /// Initialises MPI. Returns after all processes of the job have called it.
    pub(crate) fn start() -> Result<Started, String> {
        let mut level = 0;
        // SAFETY: MPI allows null arguments; the process calls this once.
        unsafe {
            let wanted = ffi::RSMPI_THREAD_SERIALIZED;
            let status = ffi::MPI_Init_thread(
                std::ptr::null_mut(),
                std::ptr::null_mut(),
                wanted,
                &raw mut level,
            );
            check("MPI_Init_thread", status)?;
            if level < wanted {
                return Err("this MPI allows calls from one thread only".to_owned());
            }
            let handler = ffi::RSMPI_ERRORS_RETURN;
            check(
                "MPI_Comm_set_errhandler",
                ffi::MPI_Comm_set_errhandler(world(), handler),
            )?;
        }
        let (mut rank, mut ranks) = (0, 0);
        let (mut name, mut len) = ([0 as c_char; 512], 0);
        // SAFETY: MPI is initialised, and the buffer holds MPI_MAX_PROCESSOR_NAME bytes.
        unsafe {
            check("MPI_Comm_rank", ffi::MPI_Comm_rank(world(), &raw mut rank))?;
            check("MPI_Comm_size", ffi::MPI_Comm_size(world(), &raw mut ranks))?;
            let status = ffi::MPI_Get_processor_name(name.as_mut_ptr(), &raw mut len);
            check("MPI_Get_processor_name", status)?;
        }
        let name = name.iter().take(usize::try_from(len).unwrap_or(0));
        let name: Vec<u8> = name.map(|c| c.cast_unsigned()).collect();
        Ok(Started {
            calls: Calls(()),
            rank: usize::try_from(rank).unwrap_or(0),
            ranks: usize::try_from(ranks).unwrap_or(1),
            host: String::from_utf8_lossy(&name).into_owned(),
        })
    }

    /// Begins to send.
    ///
    /// # Safety
    /// The bytes stay valid and unchanged until the request is done.
    pub(crate) unsafe fn send(
        &mut self,
        to: usize,
        tag: Tag,
        bytes: &[u8],
    ) -> Result<Request, String> {
        let mut request = MaybeUninit::uninit();
        // SAFETY: caller's contract.
        unsafe {
            let status = ffi::MPI_Isend(
                bytes.as_ptr().cast(),
                int(bytes.len())?,
                ffi::RSMPI_UINT8_T,
                int(to)?,
                tag.0.cast_signed(),
                world(),
                request.as_mut_ptr(),
            );
            check("MPI_Isend", status)?;
            Ok(Request(request.assume_init()))
        }
    }

    /// Begins to receive at most `len` bytes.
    ///
    /// # Safety
    /// The memory stays valid and unused until the request is done.
    pub(crate) unsafe fn receive(
        &mut self,
        from: usize,
        tag: Tag,
        (to, len): (*mut u8, usize),
    ) -> Result<Request, String> {
        let mut request = MaybeUninit::uninit();
        // SAFETY: caller's contract.
        unsafe {
            let status = ffi::MPI_Irecv(
                to.cast(),
                int(len)?,
                ffi::RSMPI_UINT8_T,
                int(from)?,
                tag.0.cast_signed(),
                world(),
                request.as_mut_ptr(),
            );
            check("MPI_Irecv", status)?;
            Ok(Request(request.assume_init()))
        }
    }

    /// Returns the received bytes if the request is done; for a send, 0.
    pub(crate) fn done(&mut self, request: &mut Request) -> Result<Option<usize>, String> {
        let (mut flag, mut status) = (0, MaybeUninit::zeroed());
        // SAFETY: the request is valid, or MPI_REQUEST_NULL.
        unsafe {
            let code = ffi::MPI_Test(&raw mut request.0, &raw mut flag, status.as_mut_ptr());
            check("MPI_Test", code)?;
            if flag == 0 {
                return Ok(None);
            }
            let mut count = 0;
            let code = ffi::MPI_Get_count(status.as_ptr(), ffi::RSMPI_UINT8_T, &raw mut count);
            check("MPI_Get_count", code)?;
            Ok(Some(usize::try_from(count).unwrap_or(0)))
        }
    }

    /// Cancels a request, so that MPI does not write to its memory any more.
    pub(crate) fn cancel(&mut self, mut request: Request) {
        // SAFETY: the request is valid. A cancelled receive ends without another process.
        unsafe {
            ffi::MPI_Cancel(&raw mut request.0);
            ffi::MPI_Request_free(&raw mut request.0);
        }
    }

    /// Returns the first message with this tag, from one rank or from any.
    pub(crate) fn find(&mut self, from: Option<usize>, tag: Tag) -> Result<Option<Found>, String> {
        let (mut flag, mut status) = (0, MaybeUninit::zeroed());
        // SAFETY: MPI writes the status.
        unsafe {
            let from = match from {
                Some(rank) => int(rank)?,
                None => ffi::RSMPI_ANY_SOURCE,
            };
            let code = ffi::MPI_Iprobe(
                from,
                tag.0.cast_signed(),
                world(),
                &raw mut flag,
                status.as_mut_ptr(),
            );
            check("MPI_Iprobe", code)?;
            if flag == 0 {
                return Ok(None);
            }
            let status: ffi::MPI_Status = status.assume_init();
            let mut count = 0;
            let code = ffi::MPI_Get_count(&raw const status, ffi::RSMPI_UINT8_T, &raw mut count);
            check("MPI_Get_count", code)?;
            Ok(Some(Found {
                from: usize::try_from(status.MPI_SOURCE).unwrap_or(0),
                bytes: usize::try_from(count).unwrap_or(0),
            }))
        }
    }

    /// Ends MPI, after all messages.
    pub(crate) fn finish(&mut self) {
        // SAFETY: MPI is initialised, and no thread calls it later.
        unsafe { ffi::MPI_Finalize() };
    }

    /// Ends all processes of the job.
    pub(crate) fn abort(status: i32) {
        // SAFETY: MPI is initialised. MPI_Abort may be called while another thread is in MPI: the job ends.
        unsafe { ffi::MPI_Abort(world(), status) };
    }
}
