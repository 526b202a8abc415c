//! GStreamer's shared memory: `appsrc ! shmsink` in the producer, `shmsrc ! appsink` in the
//! consumer, as in a program that uses GStreamer.
//!
//! The libraries are loaded when needed, so that a build needs none of their headers and a machine
//! without them only lacks this row. Types and signatures: GStreamer 1.x API reference, stable
//! within 1.x.

use std::ffi::{CStr, CString, c_char, c_int, c_uint, c_void};
use std::path::{Path, PathBuf};
use std::ptr::{NonNull, null_mut};
use std::time::{Duration, Instant};

use super::{
    End, IoContext, Outgoing, Received, Receiver, Sender, Side, TransportError, Wiring, failed,
};

/// How long a consumer waits for the producer's socket.
const SOCKET_WAIT: Duration = Duration::from_secs(10);
/// How often it checks for the socket.
const LOOK: Duration = Duration::from_millis(5);
/// Time limit of one wait for a frame, nanoseconds; the end of the stream is checked between waits.
const LOOK_NS: u64 = 200_000_000;

const PACKAGES: &str = "install gstreamer1.0-plugins-base and gstreamer1.0-plugins-bad";

pub(super) fn wire(wiring: &mut Wiring) -> Result<(), TransportError> {
    if wiring.folder.is_none() {
        // A missing library is reported before any process is started.
        load_gstreamer()?;
        wiring.folder = Some(
            tempfile::Builder::new().prefix("throng-ipc-").tempdir().context("making a folder")?,
        );
    }
    let folder = wiring.folder.as_ref().map(|folder| folder.path().to_owned()).unwrap_or_default();
    let socket =
        folder.join(format!("shm-{}", wiring.producers.len())).to_string_lossy().into_owned();
    // The names go into a pipeline description, where such characters end a value.
    if socket.contains(['"', '\\', ' ', '!']) {
        return Err(failed(
            "naming its socket",
            format!("{socket}: set TMPDIR to a path without spaces"),
        ));
    }
    wiring.producers.push(End { fd: None, address: Some(socket.clone()) });
    wiring.consumer.push(End { fd: None, address: Some(socket) });
    Ok(())
}

/// Loads the libraries of GStreamer, by which frames are passed as one of the transports.
///
/// # Errors
/// [`TransportError::Missing`], with the packages that have them.
pub fn load_gstreamer() -> Result<(), TransportError> {
    Library::open().map(drop)
}

/// Removes the shared memory that `shmsink` leaves behind in `/dev/shm` when its process is killed.
pub(crate) fn clean_after(pid: u32) {
    let prefix = format!("shmpipe.{pid:5}.");
    let Ok(entries) = std::fs::read_dir("/dev/shm") else { return };
    for entry in entries.flatten() {
        if entry.file_name().to_string_lossy().starts_with(&prefix) {
            let _ = std::fs::remove_file(entry.path());
        }
    }
}

type Object = NonNull<c_void>;

#[repr(C)]
struct GError {
    domain: u32,
    code: c_int,
    message: *const c_char,
}

#[repr(C)]
struct GstMapInfo {
    memory: *mut c_void,
    flags: c_int,
    data: *mut u8,
    size: usize,
    maxsize: usize,
    user_data: [*mut c_void; 4],
    reserved: [*mut c_void; 4],
}

const STATE_NULL: c_int = 1;
const STATE_PLAYING: c_int = 4;
const STATE_CHANGE_FAILURE: c_int = 0;
const MEMORY_READONLY: c_int = 2;
const MAP_READ: c_int = 1;

/// The functions of libgstreamer and libgstapp that are used.
struct Library {
    init_check: unsafe extern "C" fn(*mut c_int, *mut c_void, *mut *mut GError) -> c_int,
    parse_launch: unsafe extern "C" fn(*const c_char, *mut *mut GError) -> *mut c_void,
    bin_get_by_name: unsafe extern "C" fn(*mut c_void, *const c_char) -> *mut c_void,
    element_set_state: unsafe extern "C" fn(*mut c_void, c_int) -> c_int,
    object_unref: unsafe extern "C" fn(*mut c_void),
    mini_object_unref: unsafe extern "C" fn(*mut c_void),
    buffer_new_wrapped_full: unsafe extern "C" fn(
        c_int,
        *mut c_void,
        usize,
        usize,
        usize,
        *mut c_void,
        *mut c_void,
    ) -> *mut c_void,
    buffer_map: unsafe extern "C" fn(*mut c_void, *mut GstMapInfo, c_int) -> c_int,
    buffer_unmap: unsafe extern "C" fn(*mut c_void, *mut GstMapInfo),
    sample_get_buffer: unsafe extern "C" fn(*mut c_void) -> *mut c_void,
    app_src_push_buffer: unsafe extern "C" fn(*mut c_void, *mut c_void) -> c_int,
    app_sink_try_pull_sample: unsafe extern "C" fn(*mut c_void, u64) -> *mut c_void,
    app_sink_is_eos: unsafe extern "C" fn(*mut c_void) -> c_uint,
}

impl Library {
    #[expect(
        clippy::missing_transmute_annotations,
        reason = "the fields give the signatures, once"
    )]
    fn open() -> Result<Self, TransportError> {
        let open = |name: &CStr| {
            // SAFETY: the name is a C string; code that runs when the library is loaded is part of
            // the installed library.
            let handle = unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_NOW | libc::RTLD_GLOBAL) };
            NonNull::new(handle).ok_or_else(|| {
                TransportError::Missing(format!(
                    "{} is not here: {PACKAGES}",
                    name.to_string_lossy()
                ))
            })
        };
        let (core, app) = (open(c"libgstreamer-1.0.so.0")?, open(c"libgstapp-1.0.so.0")?);
        macro_rules! symbol {
            ($library:expr, $name:literal) => {{
                // SAFETY: the library is open and stays open for the life of the process.
                let address = unsafe { libc::dlsym($library.as_ptr(), $name.as_ptr()) };
                if address.is_null() {
                    let name = $name.to_string_lossy();
                    return Err(TransportError::Missing(format!(
                        "GStreamer has no {name}: 1.20 or newer is needed"
                    )));
                }
                // SAFETY: the function of that name has the signature of the field, by GStreamer's
                // reference.
                unsafe { std::mem::transmute::<*mut c_void, _>(address) }
            }};
        }
        Ok(Self {
            init_check: symbol!(core, c"gst_init_check"),
            parse_launch: symbol!(core, c"gst_parse_launch"),
            bin_get_by_name: symbol!(core, c"gst_bin_get_by_name"),
            element_set_state: symbol!(core, c"gst_element_set_state"),
            object_unref: symbol!(core, c"gst_object_unref"),
            mini_object_unref: symbol!(core, c"gst_mini_object_unref"),
            buffer_new_wrapped_full: symbol!(core, c"gst_buffer_new_wrapped_full"),
            buffer_map: symbol!(core, c"gst_buffer_map"),
            buffer_unmap: symbol!(core, c"gst_buffer_unmap"),
            sample_get_buffer: symbol!(core, c"gst_sample_get_buffer"),
            app_src_push_buffer: symbol!(app, c"gst_app_src_push_buffer"),
            app_sink_try_pull_sample: symbol!(app, c"gst_app_sink_try_pull_sample"),
            app_sink_is_eos: symbol!(app, c"gst_app_sink_is_eos"),
        })
    }
}

/// A pipeline and the element in it that frames go through.
struct Pipeline {
    library: Library,
    pipeline: Object,
    element: Object,
}

// SAFETY: GStreamer's objects may be used from any thread; nothing here is used from two at once.
unsafe impl Send for Pipeline {}

impl Pipeline {
    /// `description` names the element `end`.
    fn new(description: &str) -> Result<Self, TransportError> {
        let doing = "making a GStreamer pipeline";
        let library = Library::open()?;
        let mut error: *mut GError = null_mut();
        // SAFETY: no arguments are passed, and `error` may be written.
        if unsafe { (library.init_check)(null_mut(), null_mut(), &raw mut error) } == 0 {
            return Err(failed("initialising GStreamer", reason(error)));
        }
        let description = CString::new(description).map_err(|error| failed(doing, error))?;
        // SAFETY: a C string, and `error` may be written.
        let pipeline = unsafe { (library.parse_launch)(description.as_ptr(), &raw mut error) };
        let pipeline = NonNull::new(pipeline).filter(|_| error.is_null());
        let Some(pipeline) = pipeline else {
            return Err(TransportError::Missing(format!(
                "GStreamer reports {}: {PACKAGES}",
                reason(error)
            )));
        };
        // SAFETY: the pipeline is alive; the returned reference belongs to this value.
        let element = unsafe { (library.bin_get_by_name)(pipeline.as_ptr(), c"end".as_ptr()) };
        let element =
            NonNull::new(element).ok_or_else(|| failed(doing, "it has no element of that name"))?;
        Ok(Self { library, pipeline, element })
    }

    fn play(&self) -> Result<(), TransportError> {
        // SAFETY: the pipeline is alive.
        if unsafe { (self.library.element_set_state)(self.pipeline.as_ptr(), STATE_PLAYING) }
            == STATE_CHANGE_FAILURE
        {
            return Err(failed("starting a GStreamer pipeline", "it does not start"));
        }
        Ok(())
    }

    /// Resets the pipeline, so that [`Pipeline::play`] can be tried again.
    fn stop(&self) {
        // SAFETY: the pipeline is alive; in the state NULL no thread of it runs any more.
        unsafe { (self.library.element_set_state)(self.pipeline.as_ptr(), STATE_NULL) };
    }
}

impl Drop for Pipeline {
    fn drop(&mut self) {
        self.stop();
        // SAFETY: both references belong to this value.
        unsafe {
            (self.library.object_unref)(self.element.as_ptr());
            (self.library.object_unref)(self.pipeline.as_ptr());
        }
    }
}

fn reason(error: *mut GError) -> String {
    // SAFETY: the pointer is null, or an error that stays alive.
    let message = unsafe { error.as_ref() }.map_or(std::ptr::null(), |error| error.message);
    if message.is_null() {
        return "nothing more".into();
    }
    // SAFETY: an error's message is a C string.
    unsafe { CStr::from_ptr(message) }.to_string_lossy().into_owned()
}

/// The producer's pipeline. `shmsink` copies each frame into its shared memory on a thread of its
/// own; at most four frames wait for it, and a producer has more slots than that.
pub(super) struct Sink(Pipeline);

impl Sink {
    pub(super) fn open(side: &Side) -> Result<Self, TransportError> {
        let socket = side.end()?.address()?;
        let shm_bytes = side.frame_bytes_max.saturating_add(4096).saturating_mul(4).max(1 << 20);
        let pipeline = Pipeline::new(&format!(
            "appsrc name=end format=time block=true max-buffers=2 max-bytes=0 ! shmsink \
             socket-path=\"{socket}\" shm-size={shm_bytes} wait-for-connection=true sync=false \
             async=false"
        ))?;
        pipeline.play()?;
        Ok(Self(pipeline))
    }
}

impl Sender for Sink {
    fn send(&mut self, frame: &Outgoing<'_>) -> Result<(), TransportError> {
        let (data, bytes) = (frame.bytes.as_ptr().cast_mut().cast(), frame.bytes.len());
        let library = &self.0.library;
        // SAFETY: the memory is a slot of the producer's pool. That outlives this pipeline, which
        // holds no buffer once it is dropped, and a slot is not written until every other one was
        // used, of which there are more than the pipeline holds; it is marked as read-only; nothing
        // has to be freed.
        let buffer = unsafe {
            (library.buffer_new_wrapped_full)(
                MEMORY_READONLY,
                data,
                bytes,
                0,
                bytes,
                null_mut(),
                null_mut(),
            )
        };
        let buffer = NonNull::new(buffer).ok_or_else(|| failed("wrapping a frame", "no memory"))?;
        // SAFETY: both are alive; the buffer's reference goes to the element.
        match unsafe { (library.app_src_push_buffer)(self.0.element.as_ptr(), buffer.as_ptr()) } {
            0 => Ok(()),
            flow => Err(failed("pushing a frame", format!("flow return {flow}"))),
        }
    }
}

/// The consumer's pipeline, started for the first frame: `shmsrc` needs the producer's socket to
/// exist.
pub(super) struct Source {
    pipeline: Pipeline,
    socket: PathBuf,
    is_playing: bool,
}

impl Source {
    pub(super) fn open(end: &End) -> Result<Self, TransportError> {
        let socket = end.address()?;
        let pipeline = Pipeline::new(&format!(
            "shmsrc socket-path=\"{socket}\" ! appsink name=end sync=false max-buffers=2 drop=false"
        ))?;
        Ok(Self { pipeline, socket: Path::new(socket).to_owned(), is_playing: false })
    }

    fn start(&mut self) -> Result<(), TransportError> {
        let until = Instant::now() + SOCKET_WAIT;
        while !self.socket.exists() {
            if Instant::now() > until {
                return Err(failed("waiting for shmsink", "it made no socket"));
            }
            std::thread::sleep(LOOK);
        }
        // The socket's name exists a moment before the producer listens there; `shmsrc` does not
        // retry.
        while let Err(error) = self.pipeline.play() {
            if Instant::now() > until {
                return Err(error);
            }
            self.pipeline.stop();
            std::thread::sleep(LOOK);
        }
        self.is_playing = true;
        Ok(())
    }
}

impl Receiver for Source {
    fn receive(&mut self, take: &mut dyn FnMut(&[u8])) -> Result<Received, TransportError> {
        if !self.is_playing {
            self.start()?;
        }
        let (library, sink) = (&self.pipeline.library, self.pipeline.element.as_ptr());
        let sample = loop {
            // SAFETY: the element is alive; the returned reference belongs to this function.
            match NonNull::new(unsafe { (library.app_sink_try_pull_sample)(sink, LOOK_NS) }) {
                Some(sample) => break sample,
                // SAFETY: the element is alive.
                None if unsafe { (library.app_sink_is_eos)(sink) } != 0 => {
                    return Ok(Received::Closed);
                }
                None => {}
            }
        };
        let mut map = GstMapInfo {
            memory: null_mut(),
            flags: 0,
            data: null_mut(),
            size: 0,
            maxsize: 0,
            user_data: [null_mut(); 4],
            reserved: [null_mut(); 4],
        };
        // SAFETY: the sample is alive and its buffer lives as long; what was mapped is `size` bytes
        // at `data` until it is unmapped.
        let is_mapped = unsafe {
            let buffer = (library.sample_get_buffer)(sample.as_ptr());
            let is_mapped =
                !buffer.is_null() && (library.buffer_map)(buffer, &raw mut map, MAP_READ) != 0;
            if is_mapped {
                if !map.data.is_null() {
                    take(std::slice::from_raw_parts(map.data, map.size));
                }
                (library.buffer_unmap)(buffer, &raw mut map);
            }
            (library.mini_object_unref)(sample.as_ptr());
            is_mapped
        };
        if is_mapped {
            Ok(Received::Frame)
        } else {
            Err(failed("mapping a frame", "GStreamer refuses"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_source_without_a_listener_starts_once_there_is_one() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("shm");
        let socket = path.display();
        let source = format!("shmsrc socket-path=\"{socket}\" ! appsink name=end sync=false");
        let source = match Pipeline::new(&source) {
            Ok(pipeline) => Source { pipeline, socket: path.clone(), is_playing: false },
            // Not on this machine.
            Err(TransportError::Missing(_)) => return,
            Err(error) => panic!("{error}"),
        };
        // Its name exists, but no process listens.
        let bound = std::os::unix::net::UnixDatagram::bind(&path).unwrap();
        let late = std::thread::spawn(move || {
            let mut source = source;
            source.start().map(|()| source)
        });
        std::thread::sleep(LOOK * 20);
        drop(bound);
        std::fs::remove_file(&path).unwrap();
        let sink = format!(
            "appsrc name=end ! shmsink socket-path=\"{socket}\" wait-for-connection=true async=false"
        );
        let sink = Pipeline::new(&sink).unwrap();
        sink.play().unwrap();
        assert!(late.join().unwrap().unwrap().is_playing);
    }
}
